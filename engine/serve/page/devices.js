// The devices with their memory: ours, that of other programs, free; and whether they take work.
import {get, post} from './api.js';
import {announce, byId, bytesText, guarded, make, setText, showList} from './dom.js';

const kEvery = 3000;  // ms
const kParts = ['ours', 'others', 'free'];

function stateText({service, state, trouble, last_failure: failure, jobs}) {
  if (trouble) return trouble;
  if (state === 'degraded') return `Takes no work for a while: ${failure}`;
  if (service !== 'enabled') return {draining: 'Ends what it does', drained: 'Drained', disabled: 'Off'}[service] ?? service;
  return jobs.length === 0 ? 'Idle' : jobs.length === 1 ? '1 job' : `${jobs.length} jobs`;
}

// What it holds, at a wish.
function modelsElement() {
  const summary = make('summary'), list = make('ul');
  const element = make('details', {className: 'models', label: 'Models'}, summary, list);
  element.update = (models) => {
    const bytes = models.reduce((sum, model) => sum + model.bytes, 0);
    element.hidden = models.length === 0;
    setText(summary, `Holds ${models.length === 1 ? '1 model' : `${models.length} models`}, ${bytesText(bytes)}`);
    showList(list, models.map((model) => ({...model, id: model.name})), () => {
      const name = make('span'), size = make('span');
      const item = make('li', {}, name, size);
      item.update = (model) => {
        setText(name, model.name);
        setText(size, bytesText(model.bytes));
      };
      return item;
    });
  };
  return element;
}

function deviceItem(device) {
  const name = make('p', {className: 'title'}), facts = make('p', {className: 'facts'}), models = modelsElement();
  const parts = Object.fromEntries(kParts.map((key) => [key, make('span', {className: key})]));
  const numbers = Object.fromEntries(kParts.map((key) => [key, make('span', {})]));
  const bar = make('div', {className: 'memory', role: 'img'}, ...Object.values(parts));
  const legend = make('p', {className: 'legend'}, ...kParts.map((key) => make('span', {className: key}, `${key} `, numbers[key])));
  const state = make('span', {});
  const work = make('button', {type: 'button', className: 'quiet switch', role: 'switch', label: `${device.id} takes work`}, state);
  let latest = device;
  work.addEventListener('click', guarded(async () => {
    const action = latest.service === 'enabled' ? 'drain' : 'enable';
    await post(`v1/devices/${encodeURIComponent(device.id)}/${action}`);
    announce(`${device.id} ${action === 'drain' ? 'takes no more work' : 'takes work again'}`);
    await refresh();
  }));
  const element = make('li', {className: 'device'}, make('div', {className: 'top'}, make('div', {className: 'about'}, name, facts), work),
                       bar, legend, models);
  element.update = (now) => {
    latest = now;
    const {memory} = now;
    setText(name, now.id);
    setText(facts, now.name);
    setText(state, stateText(now));
    work.disabled = document.documentElement.dataset.role === 'user';
    work.setAttribute('aria-checked', String(now.service === 'enabled'));
    for (const key of kParts) {
      parts[key].style.flexGrow = String(memory.total > 0 ? memory[key] / memory.total : 0);
      setText(numbers[key], bytesText(memory[key]));
    }
    const label = `Memory of ${now.id}: ${kParts.map((key) => `${key} ${bytesText(memory[key])}`).join(', ')}`;
    if (bar.getAttribute('aria-label') !== label) bar.setAttribute('aria-label', label);
    models.update(now.models);
  };
  return element;
}

async function refresh() {
  const {devices} = await get('v1/devices');
  showList(byId('device-list'), devices, deviceItem);
}

// While somebody looks.
export function startDevices() {
  const look = () => {
    if (!document.hidden) refresh().catch(() => {});
  };
  look();
  setInterval(look, kEvery);
  document.addEventListener('visibilitychange', look);
}
