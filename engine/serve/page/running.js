// A tile for each job that runs, and the last job of this page below its form.
import {post, viewPath} from './api.js';
import {announce, byId, guarded, iconButton, make, setText, showList, timeText} from './dom.js';
import {filesOf, findJob, known, liveOf, progressText, shareOf} from './jobs.js';

const kTick = 500;  // ms, of the time that tiles show

function showBar(bar, share) {
  if (share === null) bar.removeAttribute('value');
  else if (bar.value !== share || !bar.hasAttribute('value')) bar.value = share;
}

function showPreview(picture, url, text) {
  picture.hidden = !url;
  if (url && picture.getAttribute('src') !== url) picture.src = url;
  picture.alt = `Preview: ${text}`;
}

function tile(job) {
  const picture = make('img', {alt: '', hidden: true});
  const title = make('p', {className: 'title', id: `tile-${job.id}`});
  const bar = make('progress', {max: 1, aria: {labelledby: title.id}});
  const node = make('span', {className: 'node'}), time = make('span', {className: 'time'});
  const cancel = iconButton('close', `Cancel: ${job.title}`, guarded(async () => {
    await post(`api/jobs/${encodeURIComponent(job.id)}/cancel`);
    announce('The job is being cancelled');
  }));
  const element = make('li', {className: 'tile'}, make('div', {className: 'picture'}, picture),
                       make('div', {className: 'about'}, title, bar, make('p', {className: 'facts'}, node, time)),
                       make('div', {className: 'buttons'}, cancel));
  const since = Date.now();
  element.tick = () => setText(time, timeText(Date.now() - since));
  element.update = (now) => {
    setText(title, now.title);
    setText(node, progressText(now));
    showBar(bar, shareOf(now));
    showPreview(picture, liveOf(now.id).picture, now.title);
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

// The job that this page queued last.
let mine = sessionStorage.getItem('heddle-last') ?? '';
export function follow(id) {
  mine = id;
  sessionStorage.setItem('heddle-last', id);
  showResult();
}

let shown = '';  // what the result's picture is of
function showFile(job, url) {
  const key = url || (job.state === 'done' ? `done ${job.id}` : '');
  if (key === shown || key === '') return;
  shown = key;
  const [first] = url ? [] : filesOf(job);
  const element = url ? make('img', {src: url, alt: `Preview: ${job.title}`})
                : !first ? make('p', {className: 'empty'}, 'It made no picture.')
                : first.kind === 'picture' ? make('img', {src: viewPath(first.file), alt: job.title})
                : make(first.kind, {src: viewPath(first.file), controls: true, label: job.title});
  byId('result-picture').replaceChildren(element);
}

export function showResult() {
  const job = mine ? findJob(mine) : null;
  byId('result').hidden = !job;
  if (!job) return;
  const bar = byId('result-bar');
  bar.hidden = job.state !== 'running';
  showBar(bar, shareOf(job));
  showFile(job, job.state === 'running' ? liveOf(job.id).picture : '');
  const text = {pending: 'Waiting', running: progressText(job), cancelled: 'Cancelled', failed: `Failed. ${job.error}`,
                done: `Done in ${timeText(job.endedMs - job.startedMs)}`}[job.state] ?? job.state;
  setText(byId('result-text'), text);
  byId('result').dataset.state = job.state;
}
