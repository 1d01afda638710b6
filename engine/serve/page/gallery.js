// What jobs have made, newest first, and one of it at full size.
import {viewPath} from './api.js';
import {byId, guarded, icon, make, setText, showList, timeText} from './dom.js';
import {known, showOlder} from './jobs.js';
import {showWorkflow} from './form.js';

let shown = [];      // {id, job, file}
let current = null;  // the id of the one in the viewer

function thumbnail(item) {
  const path = viewPath(item.file, 'webp;75');
  const inside = item.file.kind === 'picture' ? make('img', {loading: 'lazy', decoding: 'async', alt: '', src: path})
                                         : icon(item.file.kind === 'video' ? 'run' : 'gallery');
  const button = make('button', {type: 'button', label: `${item.file.filename}: ${item.job.title}`,
                                 onclick: () => open(item.id)}, inside);
  const element = make('li', {}, button);
  element.update = () => {};
  return element;
}

export function showGallery() {
  shown = known.pictured.flatMap((job) => job.files.map((file) =>
    ({id: `${job.id}/${file.type}/${file.subfolder}/${file.filename}`, job, file})));
  showList(byId('pictures'), shown, thumbnail);
  byId('no-pictures').hidden = shown.length > 0;
  byId('more').hidden = !known.hasOlder;
  if (byId('viewer').open) showNeighbours();
}

function showNeighbours() {
  const at = shown.findIndex((item) => item.id === current);
  byId('viewer-previous').disabled = at <= 0;
  byId('viewer-next').disabled = at < 0 || at + 1 >= shown.length;
}

function open(id) {
  const item = shown.find((one) => one.id === id);
  if (!item) return;
  current = id;
  const path = viewPath(item.file), {job} = item;
  const element = item.file.kind === 'picture' ? make('img', {src: path, alt: job.title})
                                          : make(item.file.kind, {src: path, controls: true, label: job.title});
  byId('viewer-picture').replaceChildren(element);
  setText(byId('viewer-title'), item.file.filename);
  setText(byId('viewer-text'), `${job.title} · ${timeText(job.ended_ms - job.started_ms)} · ${new Date(job.ended_ms).toLocaleString()}`);
  byId('viewer-save').href = path;
  byId('viewer-save').download = item.file.filename;
  showNeighbours();
  if (!byId('viewer').open) byId('viewer').showModal();
}

function step(by) {
  const at = shown.findIndex((item) => item.id === current);
  if (at >= 0 && shown[at + by]) open(shown[at + by].id);
}

export function startGallery() {
  const viewer = byId('viewer');
  byId('more').addEventListener('click', showOlder);
  byId('viewer-close').addEventListener('click', () => viewer.close());
  byId('viewer-previous').addEventListener('click', () => step(-1));
  byId('viewer-next').addEventListener('click', () => step(1));
  viewer.addEventListener('keydown', (event) => {
    if (event.target.matches('video, audio')) return;
    if (event.key === 'ArrowLeft') step(-1);
    if (event.key === 'ArrowRight') step(1);
  });
  viewer.addEventListener('click', (event) => {
    if (event.target === viewer) viewer.close();  // beside it
  });
  viewer.addEventListener('close', () => byId('viewer-picture').replaceChildren());
  byId('viewer-use').addEventListener('click', guarded(async () => {
    const item = shown.find((one) => one.id === current);
    viewer.close();
    if (!item) return;
    await showWorkflow(structuredClone(item.job.prompt), item.file.filename);
    byId('form').scrollIntoView();
  }));
}
