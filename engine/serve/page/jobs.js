// What the page knows of jobs: those that run, those that wait and those that ended lately, asked
// for when the server says that something changed, and what its messages tell of running ones.
import {get} from './api.js';
import {titleOfNode, titleOfPrompt} from './workflow.js';

const kQuiet = 150;  // ms that changes are gathered for before the server is asked
const kPage = 48;    // jobs of the history that are asked for at a time

// {id, title, prompt, createdMs, startedMs, endedMs, state, outputs, error}
export const known = {running: [], waiting: [], ended: [], hasOlder: false};
// By id of a job that runs: {node, value, max, finished, picture}. `picture`: a URL of its own.
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
  if (!live.has(id)) live.set(id, {node: '', value: 0, max: 0, finished: 0, picture: ''});
  return live.get(id);
}

function activeJob([number, id, prompt, extra], state) {
  return {id, state, prompt, title: titleOfPrompt(prompt), createdMs: extra?.create_time ?? 0};
}

// Of the history's messages: [[type, {timestamp, ...}], ...].
function endedJob(entry) {
  const [number, id, prompt, extra] = entry.prompt;
  const told = new Map(entry.status?.messages ?? []);
  const error = told.get('execution_error');
  const last = entry.status?.messages?.at(-1)?.[1]?.timestamp ?? 0;
  const state = entry.status?.status_str === 'success' ? 'done' : told.has('execution_interrupted') ? 'cancelled' : 'failed';
  return {...activeJob([number, id, prompt, extra], state), outputs: entry.outputs ?? {},
          startedMs: told.get('execution_start')?.timestamp ?? last, endedMs: last,
          error: error ? `${titleOfNode(prompt, error.node_id)}: ${error.exception_message.trim()}` : ''};
}

// A picture's URL is kept in memory by the browser until it is given back.
function forgetLive(ids) {
  for (const [id, state] of live) {
    if (ids.has(id)) continue;
    if (state.picture) URL.revokeObjectURL(state.picture);
    live.delete(id);
  }
}

let lastActive = new Set(), isHistoryOld = true;

async function refresh() {
  const queue = await get('queue');
  known.running = queue.queue_running.map((item) => activeJob(item, 'running'));
  known.waiting = queue.queue_pending.map((item) => activeJob(item, 'pending'));
  const active = new Set([...known.running, ...known.waiting].map((job) => job.id));
  if (isHistoryOld || [...lastActive].some((id) => !active.has(id))) {
    isHistoryOld = false;
    const history = Object.values(await get(`history?max_items=${limit + 1}`)).map(endedJob);
    known.hasOlder = history.length > limit;
    known.ended = history.reverse().slice(0, limit);
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
    try {
      await refresh();
    } catch {
      isHistoryOld = true;  // asked again with the next message, or when the connection is back
    }
    isBusy = false;
    if (isWanted) refreshSoon();
  }, kQuiet);
}

export function showOlder() {
  limit += kPage;
  refreshSoon(true);
}

export const isRunning = (id) => known.running.some((job) => job.id === id);
export const findJob = (id) => [...known.running, ...known.waiting, ...known.ended].find((job) => job.id === id);

// A message of the server: what it says of a job that runs.
export function takeMessage(type, data) {
  const id = data.prompt_id;
  if (type === 'status' || type.startsWith('execution_')) refreshSoon(type.startsWith('execution_'));
  if (!id) return;
  const state = liveOf(id);
  if (type === 'executing' && data.node) Object.assign(state, {node: data.node, value: 0, max: 0});
  if (type === 'progress') Object.assign(state, {node: data.node, value: data.value, max: data.max});
  if (type === 'progress_state')
    state.finished = Object.values(data.nodes).filter((node) => node.state === 'finished').length;
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

// "prompt · 12 of 28", or what is known of it.
export function progressText(job) {
  const {node, value, max} = liveOf(job.id);
  if (!node) return 'Starting';
  return max > 1 ? `${titleOfNode(job.prompt, node)} · ${value} of ${max}` : titleOfNode(job.prompt, node);
}

// Of the node that runs, from 0 to 1; null: nobody has said.
export function shareOf(job) {
  const {value, max} = liveOf(job.id);
  return max > 0 ? value / max : null;
}

// The files that a job made: [{file, kind}], kind "picture", "video" or "audio".
export function filesOf(job) {
  const files = [];
  for (const output of Object.values(job.outputs ?? {}))
    for (const list of Object.values(output ?? {}))
      for (const file of Array.isArray(list) ? list : []) {
        if (typeof file?.filename !== 'string') continue;
        const kind = /\.(mp4|webm|mov|mkv)$/i.test(file.filename) ? 'video'
                   : /\.(wav|mp3|flac|ogg|opus)$/i.test(file.filename) ? 'audio'
                   : /\.(png|jpe?g|webp|gif|avif|bmp)$/i.test(file.filename) ? 'picture' : null;
        if (kind) files.push({file, kind});
      }
  return files;
}
