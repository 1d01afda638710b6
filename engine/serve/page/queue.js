// The jobs that wait, in their order, and those that ended lately.
import {post} from './api.js';
import {announce, byId, guarded, icon, iconButton, make, setText, showList, timeText} from './dom.js';
import {known} from './jobs.js';
import {clientId} from './socket.js';

const kShown = 100;      // of those that wait
const kEndedShown = 6;
const kEndedText = {done: 'Done', failed: 'Failed', cancelled: 'Cancelled'};

function waitingItem(job) {
  const title = make('p', {className: 'title'}), facts = make('p', {className: 'facts'});
  const cancel = iconButton('close', `Cancel: ${job.title}`, guarded(async () => {
    await post(`api/jobs/${encodeURIComponent(job.id)}/cancel`);
    announce('The job is cancelled');
  }));
  const element = make('li', {className: 'job'}, make('div', {className: 'about'}, title, facts),
                       make('div', {className: 'buttons'}, cancel));
  element.update = (now) => {
    setText(title, now.title);
    setText(facts, now.why ?? `Position ${known.waiting.findIndex(({id}) => id === now.id) + 1}`);
  };
  return element;
}

function endedItem(job) {
  const title = make('p', {className: 'title'}), facts = make('p', {className: 'facts'});
  const retry = iconButton('retry', `Run again: ${job.title}`, guarded(async () => {
    await post('prompt', {prompt: job.prompt, client_id: clientId()});
    announce('The job is queued again');
  }));
  const element = make('li', {className: `job ended ${job.state}`}, icon(job.state),
                       make('div', {className: 'about'}, title, facts), make('div', {className: 'buttons'}, retry));
  element.update = (now) => {
    setText(title, now.title);
    const time = now.endedMs > now.startedMs ? ` after ${timeText(now.endedMs - now.startedMs)}` : '';
    setText(facts, now.error || `${kEndedText[now.state]}${time}`);
  };
  return element;
}

export function showQueue() {
  const {waiting, ended} = known;
  showList(byId('waiting'), waiting.slice(0, kShown), waitingItem);
  byId('no-waiting').hidden = waiting.length > 0;
  byId('clear').hidden = waiting.length < 2;
  setText(byId('queue-count'), waiting.length > 0 ? String(waiting.length) : '');
  showList(byId('ended'), ended.slice(0, kEndedShown), endedItem);
  byId('ended-title').hidden = ended.length === 0;
}

export function startQueue() {
  byId('clear').addEventListener('click', guarded(async () => {
    await post('queue', {clear: true});
    announce('All waiting jobs are cancelled');
  }));
}
