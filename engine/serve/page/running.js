// A tile for each job that runs, and what became of the last ones of this page.
import {post, viewPath} from './api.js';
import {announce, byId, guarded, iconButton, make, setText, showList, timeText} from './dom.js';
import {filesOf, findJob, known, previewOf, progressText, refreshSoon, shareOf} from './jobs.js';

const kTick = 500;     // ms, of the time that tiles show
const kFollowed = 50;  // jobs of this page

function showBar(bar, share) {
  if (share === null) bar.removeAttribute('value');
  else if (bar.value !== share || !bar.hasAttribute('value')) bar.value = share;
}

function showPreview(picture, url, text) {
  picture.hidden = !url;
  if (url && picture.getAttribute('src') !== url) picture.src = url;
  picture.alt = `Preview: ${text}`;
}

// "cancel", "pause" and the like of one job; `said` is for screen readers.
export function jobAction(job, action, said, isDone = () => {}, how = undefined) {
  return guarded(async () => {
    isDone(await post(`v1/jobs/${encodeURIComponent(job.id)}/${action}`, how));
    announce(said);
    refreshSoon();
  });
}

// Of this machine's clock, as that of the server may be another one.
const firstSeen = new Map();
function timeOf(job) {
  if (!firstSeen.has(job.id)) firstSeen.set(job.id, Math.min(Date.now(), Math.max(job.started_ms ?? 0, Date.now() - 24 * 3600e3)));
  return Date.now() - firstSeen.get(job.id);
}

function tile(job) {
  const isPaused = (now) => now.progress?.state === 'paused';
  const picture = make('img', {alt: '', hidden: true});
  const title = make('p', {className: 'title', id: `tile-${job.id}`});
  const bar = make('progress', {max: 1, aria: {labelledby: title.id}});
  const node = make('span', {className: 'node'}), device = make('span', {className: 'on'}), time = make('span', {className: 'time'});
  let latest = job;
  const pause = iconButton('pause', `Pause: ${job.title}`, () =>
    jobAction(latest, ...(isPaused(latest) ? ['resume', 'The job goes on'] : ['pause', 'The job is paused']))());
  const cancel = iconButton('close', `Cancel: ${job.title}`, jobAction(job, 'cancel', 'The job is being cancelled'));
  const element = make('li', {className: 'tile'}, make('div', {className: 'picture'}, picture),
                       make('div', {className: 'about'}, title, bar, make('p', {className: 'facts'}, node), make('p', {className: 'facts'}, device, time)),
                       make('div', {className: 'buttons'}, cancel, pause));
  element.tick = () => setText(time, timeText(timeOf(latest)));
  element.gone = () => firstSeen.delete(job.id);
  element.update = (now) => {
    latest = now;
    setText(title, now.title);
    setText(node, progressText(now));
    setText(device, now.progress?.devices?.join(', ') ?? '');
    pause.relabel(`${isPaused(now) ? 'Resume' : 'Pause'}: ${now.title}`, isPaused(now) ? 'resume' : 'pause');
    showBar(bar, shareOf(now));
    showPreview(picture, previewOf(now), now.title);
    element.tick();
  };
  return element;
}

export function showRunning() {
  showList(byId('tiles'), known.running, tile);
  byId('no-tiles').hidden = known.running.length > 0;
  setText(byId('running-count'), known.running.length > 0 ? String(known.running.length) : '');
}

export function startRunning() {
  setInterval(() => [...byId('tiles').children].forEach((element) => element.tick()), kTick);
}

// The jobs that this page queued, the last one first.
let mine = JSON.parse(sessionStorage.getItem('heddle-mine') ?? '[]');
export function follow(id) {
  mine = [id, ...mine].slice(0, kFollowed);
  sessionStorage.setItem('heddle-mine', JSON.stringify(mine));
}

// One that runs, else the last one that has ended by itself, else the next one.
function followed() {
  const jobs = mine.map(findJob).filter((job) => job && job.state !== 'cancelled');
  const ended = jobs.filter((job) => job.ended_ms).sort((a, b) => b.ended_ms - a.ended_ms);
  return jobs.findLast((job) => job.state === 'running') ?? ended[0] ?? jobs.at(-1);
}

function resultElement(job) {
  const [file] = filesOf(job.id);
  if (!file) return null;
  return file.kind === 'picture' ? make('img', {src: viewPath(file), alt: job.title})
                                 : make(file.kind, {src: viewPath(file), controls: true, label: job.title});
}

let shown = '';  // what the picture is of
function showFile(job, preview) {
  const key = preview || (job.ended_ms ? `${job.state} ${job.id}` : '');
  if (key === shown || key === '') return;  // between two pictures the old one stays
  const place = byId('result-picture'), old = place.firstElementChild;
  if (preview) {
    const picture = old?.tagName === 'IMG' ? old : make('img');  // it shows the old one until the new one is there
    Object.assign(picture, {src: preview, alt: `Preview: ${job.title}`});
    if (picture !== old) place.replaceChildren(picture);
  } else {
    const element = resultElement(job);
    if (!element && job.state === 'done') return;  // its files are not known yet, or there are none
    place.replaceChildren(...(element ? [element] : []));
  }
  shown = key;
}

const kTexts = {
  pending: () => 'Waiting', paused: () => 'Paused',
  running: progressText,
  failed: (job) => `Failed. ${job.error?.message ?? ''}`,
  done: (job) => `${job.title} · done in ${timeText(job.ended_ms - job.started_ms)}`,
};

export function showResult() {
  const job = followed();
  byId('result').hidden = !job;
  if (!job) return;
  const bar = byId('result-bar');
  bar.hidden = job.state !== 'running';
  showBar(bar, shareOf(job));
  showFile(job, job.state === 'running' ? previewOf(job) : '');
  setText(byId('result-text'), kTexts[job.state](job));
  byId('result').dataset.state = job.state;
}
