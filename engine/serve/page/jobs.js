// What the page knows of jobs: those that run, those that wait and those that ended lately, asked
// for when the server says that something changed; and what its messages tell of running ones.
import {get} from './api.js';
import {titleOfNode, titleOfPrompt} from './workflow.js';

const kQuiet = 150;    // ms that changes are gathered for before the server is asked
const kEvery = 1000;   // ms, between two questions while something runs
const kWaiting = 100;  // of those that wait, at most so many are shown
const kEnded = 8;      // of those that ended
const kPage = 48;      // and so many are asked for their pictures at a time

// Jobs as /v1 tells them, each with its `prompt` and `title`. `pictured`: those of the history, with
// `files`.
export const known = {running: [], waiting: [], ended: [], pictured: [], hasOlder: false, isPaused: false, counts: {}};
// By id of a job that runs: {node, value, max, picture}. `picture`: a URL of its own.
const live = new Map();
const listeners = [];
let limit = kPage;

export function onChange(listener) {
  listeners.push(listener);
}
function tell() {
  listeners.forEach((listener) => listener());
}

export function liveOf(id) {
  if (!live.has(id)) live.set(id, {node: '', value: 0, max: 0, picture: ''});
  return live.get(id);
}

// A picture's URL is kept in memory by the browser until it is given back.
function forgetLive(ids) {
  for (const [id, state] of live) {
    if (ids.has(id)) continue;
    if (state.picture) URL.revokeObjectURL(state.picture);
    live.delete(id);
  }
}

// A job's workflow never changes: it is asked for once. null: the job is not there any more.
const prompts = new Map();
export function rememberPrompt(id, prompt) {
  prompts.set(id, prompt);
}
async function withPrompts(jobs) {
  await Promise.all(jobs.filter((job) => !prompts.has(job.id)).map(async ({id}) => {
    const whole = await get(`v1/jobs/${encodeURIComponent(id)}`).catch((error) => {
      if (error.status !== 404) throw error;
    });
    rememberPrompt(id, whole?.workflow.prompt ?? null);
  }));
  return jobs.map((job) => ({...job, prompt: prompts.get(job.id), title: titleOfPrompt(prompts.get(job.id))}));
}

function forgetPrompts() {
  const used = new Set([...known.running, ...known.waiting, ...known.ended].map(({id}) => id));
  for (const id of prompts.keys()) if (!used.has(id)) prompts.delete(id);
}

const kinds = {picture: /\.(png|jpe?g|webp|gif|avif|bmp)$/i, video: /\.(mp4|webm|mov|mkv)$/i, audio: /\.(wav|mp3|flac|ogg|opus)$/i};

// Of the outputs in a history: [{filename, subfolder, type, kind}].
function filesIn(outputs) {
  const lists = Object.values(outputs ?? {}).flatMap((output) => Object.values(output ?? {})).filter(Array.isArray);
  return lists.flat().filter((file) => typeof file?.filename === 'string').flatMap((file) => {
    const kind = Object.keys(kinds).find((name) => kinds[name].test(file.filename));
    return kind ? [{...file, kind}] : [];
  });
}

// An entry of the history, whose messages are [[type, {timestamp, ...}], ...].
function picturedJob(entry) {
  const [, id, prompt] = entry.prompt;
  const messages = entry.status?.messages ?? [];
  const times = messages.map(([, message]) => message.timestamp ?? 0);
  return {id, prompt, title: titleOfPrompt(prompt), started_ms: times[0] ?? 0, ended_ms: times.at(-1) ?? 0, files: filesIn(entry.outputs)};
}

async function refreshEnded() {
  const [ended, history] = await Promise.all([get(`v1/jobs?state=done,failed,cancelled&limit=${kEnded}`), get(`history?max_items=${limit + 1}`)]);
  const entries = Object.values(history).reverse();
  known.hasOlder = entries.length > limit;
  known.pictured = entries.slice(0, limit).map(picturedJob).filter((job) => job.files.length > 0);
  known.ended = await withPrompts(ended.jobs);
}

let lastActive = new Set(), isHistoryOld = true;

async function refresh() {
  const queue = await get(`v1/queue?limit=${kWaiting}`);
  const [running, waiting] = await Promise.all([withPrompts(queue.running), withPrompts(queue.waiting)]);
  Object.assign(known, {running, waiting, isPaused: queue.is_paused, counts: queue.counts});
  const active = new Set([...running, ...waiting].map((job) => job.id));
  if (isHistoryOld || [...lastActive].some((id) => !active.has(id))) {
    await refreshEnded();
    isHistoryOld = false;
    // What ended between the two answers is in both.
    const ended = new Set(known.ended.map(({id}) => id));
    known.running = known.running.filter(({id}) => !ended.has(id));
    forgetPrompts();
  }
  lastActive = active;
  forgetLive(new Set(known.running.map((job) => job.id)));
  tell();
}

// Asked for again while it is under way, it is done once more behind: the last answer is never an
// old one.
let isWanted = false, isBusy = false;
export function refreshSoon(isHistoryToo = false) {
  isHistoryOld ||= isHistoryToo;
  isWanted = true;
  if (isBusy) return;
  isBusy = true;
  setTimeout(async () => {
    isWanted = false;
    await refresh().catch(() => { isHistoryOld = true; });  // asked again when the connection is back
    isBusy = false;
    if (isWanted) refreshSoon();
  }, kQuiet);
}

// Of what others run there are no messages here: the server is asked for their progress.
setInterval(() => {
  if (!document.hidden && known.running.length > 0) refreshSoon();
}, kEvery);

export function showOlder() {
  limit += kPage;
  refreshSoon(true);
}

export const findJob = (id) => [...known.running, ...known.waiting, ...known.ended].find((job) => job.id === id);
export const filesOf = (id) => known.pictured.find((job) => job.id === id)?.files ?? [];

// A message of the server: what it says of a job that runs.
export function takeMessage(type, data) {
  if (type === 'status' || type.startsWith('execution_')) refreshSoon(/^execution_(success|error|interrupted)$/.test(type));
  if (!data.prompt_id) return;
  const state = liveOf(data.prompt_id);
  if (type === 'executing' && data.node) Object.assign(state, {node: data.node, value: 0, max: 0});
  if (type === 'progress') Object.assign(state, {node: data.node, value: data.value, max: data.max});
  tell();
}

// Without a word of whose it is, it is that of the only one that runs.
export function takePicture({about, blob}) {
  const id = about.prompt_id ?? (known.running.length === 1 ? known.running[0].id : null);
  if (!id) return;
  const state = liveOf(id);
  if (state.picture) URL.revokeObjectURL(state.picture);
  state.picture = URL.createObjectURL(blob);
  tell();
}

// Where its last preview is: what a message brought, else what the server has of another client's.
export function previewOf(job) {
  return liveOf(job.id).picture || (job.progress?.preview ?? '').replace(/^\//, '');
}

// "prompt · 12 of 28", or what is known of it.
export function progressText(job) {
  const {node, value, max} = liveOf(job.id);
  const [first] = job.progress?.nodes ?? [];
  if (job.is_cancel_wanted) return 'Stopping';
  if (job.progress?.state === 'paused') return 'Paused';
  if (job.waiting) return job.waiting.message;
  if (node) return max > 1 ? `${titleOfNode(job.prompt, node)} · ${value} of ${max}` : titleOfNode(job.prompt, node);
  if (first) return first.fraction > 0 ? `${titleOfNode(job.prompt, first.id)} · ${Math.round(first.fraction * 100)} %` : titleOfNode(job.prompt, first.id);
  return 'Starting';
}

// Of the node that runs, from 0 to 1; null: nobody has said.
export function shareOf(job) {
  const {value, max} = liveOf(job.id);
  const [first] = job.progress?.nodes ?? [];
  return max > 0 ? value / max : first?.fraction > 0 ? first.fraction : null;
}
