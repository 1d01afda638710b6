// The devices with their memory: ours, that of others, free.
import {get} from './api.js';
import {byId, bytesText, make, setText, showList} from './dom.js';

const kEvery = 3000;  // ms

function part(name) {
  return make('span', {className: name});
}

function deviceItem(device) {
  const name = make('p', {className: 'title'}), facts = make('p', {className: 'facts'});
  const parts = {ours: part('ours'), others: part('others'), free: part('free')};
  const bar = make('div', {className: 'memory', role: 'img'}, ...Object.values(parts));
  const numbers = Object.fromEntries(Object.keys(parts).map((key) => [key, make('span', {})]));
  const legend = make('p', {className: 'legend'},
                      ...Object.keys(parts).map((key) => make('span', {className: key}, `${key} `, numbers[key])));
  const element = make('li', {className: 'device'}, make('div', {className: 'about'}, name, facts), bar, legend);
  element.update = (now) => {
    setText(name, now.id);
    setText(facts, now.name);
    for (const key of Object.keys(parts)) {
      parts[key].style.flexGrow = String(now.total > 0 ? now[key] / now.total : 0);
      setText(numbers[key], bytesText(now[key]));
    }
    bar.setAttribute('aria-label', `Memory of ${now.id}: ${Object.keys(parts).map((key) => `${key} ${bytesText(now[key])}`).join(', ')}`);
  };
  return element;
}

// {name: "cuda:0 NVIDIA H100", vram_total, vram_free, torch_vram_total}
function deviceOf(told) {
  const space = told.name.indexOf(' ');
  const total = told.vram_total, free = told.vram_free, ours = Math.min(told.torch_vram_total, total - free);
  return {id: told.name.slice(0, space), name: told.name.slice(space + 1), total, free, ours, others: total - free - ours};
}

async function refresh() {
  const {devices} = await get('system_stats');
  showList(byId('device-list'), devices.map(deviceOf), deviceItem);
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
