// The jobs that wait, in their order, which a person may change; and those that ended lately.
import {post} from './api.js';
import {announce, byId, guarded, icon, iconButton, make, setText, showList, timeText} from './dom.js';
import {known, refreshSoon} from './jobs.js';
import {follow, jobAction} from './running.js';
import {isDragging, startDrag} from './reorder.js';

const kEndedText = {done: 'Done', failed: 'Failed', cancelled: 'Cancelled'};

// Behind the last one that is shown there may be others.
const isWhole = () => known.waiting.length === (known.counts.pending ?? 0) + (known.counts.paused ?? 0);

// Puts the job where another one is now; "": at the end.
async function moveBefore(id, other) {
  await post(`v1/jobs/${encodeURIComponent(id)}/move`, other ? {before: other} : {to: 'back'});
  refreshSoon();
}

const step = (id, by) => guarded(async () => {
  const at = known.waiting.findIndex((job) => job.id === id), to = at + by;
  if (at < 0 || to < 0 || to >= known.waiting.length) return;
  const before = known.waiting[by < 0 ? to : to + 1];
  if (!before && !isWhole()) return;
  await moveBefore(id, before?.id ?? '');
  announce(`Now at position ${to + 1} of ${known.waiting.length}`);
});

function whyText(job) {
  const {reason, message} = job.waiting ?? {};
  if (reason === 'paused') return 'Paused';
  if (reason === 'queue_paused') return `Position ${job.position + 1}`;
  if (reason === 'behind_others') return `${job.position} before it`;
  return reason === 'workers' ? 'Next' : message ?? 'Waiting';
}

function waitingItem(job) {
  const title = make('p', {className: 'title'}), facts = make('p', {className: 'facts'});
  let latest = job;
  const pause = iconButton('pause', `Pause: ${job.title}`, () =>
    jobAction(latest, ...(latest.state === 'paused' ? ['resume', 'The job goes on waiting'] : ['pause', 'The job is paused']))());
  const up = iconButton('up', `Move up: ${job.title}`, step(job.id, -1));
  const down = iconButton('down', `Move down: ${job.title}`, step(job.id, 1));
  const cancel = iconButton('close', `Cancel: ${job.title}`, jobAction(job, 'cancel', 'The job is cancelled'));
  const handle = iconButton('drag', `Drag, or move with the arrow keys: ${job.title}`);
  handle.classList.add('drag');
  for (const button of [handle, up, down]) button.classList.add('of-admin');
  handle.addEventListener('keydown', (event) => {
    const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!by) return;
    event.preventDefault();
    step(job.id, by)();
  });
  const element = make('li', {className: 'job'}, handle, make('div', {className: 'about'}, title, facts),
                       make('div', {className: 'buttons'}, up, down, pause, cancel));
  startDrag(handle, element, guarded((next) => moveBefore(job.id, next)));
  element.update = (now) => {
    latest = now;
    const at = known.waiting.indexOf(now), isPaused = now.state === 'paused';
    setText(title, now.title);
    setText(facts, whyText(now));
    element.classList.toggle('paused', isPaused);
    up.disabled = at === 0;
    down.disabled = at + 1 === known.waiting.length;
    pause.relabel(`${isPaused ? 'Resume' : 'Pause'}: ${now.title}`, isPaused ? 'resume' : 'pause');
  };
  return element;
}

function endedItem(job) {
  const title = make('p', {className: 'title'}), facts = make('p', {className: 'facts'});
  const retry = iconButton('retry', `Run again: ${job.title}`, jobAction(job, 'retry', 'The job is queued again', (made) => follow(made.id)));
  const anew = iconButton('anew', `Run all of it again, without kept results: ${job.title}`,
                          jobAction(job, 'retry', 'The job is queued again, from its start', (made) => follow(made.id), {from_start: true}));
  const element = make('li', {className: `job ended ${job.state}`}, icon(job.state),
                       make('div', {className: 'about'}, title, facts), make('div', {className: 'buttons'}, retry, anew));
  element.update = (now) => {
    setText(title, now.title);
    const time = now.started_ms ? ` after ${timeText(now.ended_ms - now.started_ms)}` : '';
    setText(facts, now.error?.message || `${kEndedText[now.state]}${time}`);
  };
  return element;
}

function showPaused() {
  const button = byId('pause-queue');
  setText(button, known.isPaused ? 'Resume' : 'Pause');
  button.setAttribute('aria-label', known.isPaused ? 'Resume the queue' : 'Pause the queue');
  byId('queue-paused').hidden = !known.isPaused;
}

export function showQueue() {
  const {waiting, ended, counts} = known;
  const count = (counts.pending ?? 0) + (counts.paused ?? 0);
  if (!isDragging()) showList(byId('waiting'), waiting, waitingItem);
  byId('no-waiting').hidden = waiting.length > 0;
  byId('not-shown').hidden = count <= waiting.length;
  setText(byId('not-shown'), `and ${count - waiting.length} more`);
  byId('clear').hidden = count < 2;
  setText(byId('queue-count'), count > 0 ? String(count) : '');
  showPaused();
  showList(byId('ended'), ended, endedItem);
  byId('ended-title').hidden = ended.length === 0;
}

export function startQueue() {
  byId('clear').addEventListener('click', guarded(async () => {
    if (!confirm('Cancel all jobs that wait?')) return;
    await post('v1/cancel', {all: true, but_running: true});
    announce('All waiting jobs are cancelled');
    refreshSoon();
  }));
  byId('pause-queue').addEventListener('click', guarded(async () => {
    await post(known.isPaused ? 'v1/queue/resume' : 'v1/queue/pause');
    announce(known.isPaused ? 'The queue goes on' : 'The queue is paused');
    refreshSoon();
  }));
}
