// Elements, made without a word of markup: what comes from a job is text and stays text.

export const byId = (id) => document.getElementById(id);

// make('button', {type: 'button', label: 'Cancel', onclick}, child, 'text'). `label` is what screen
// readers say, `data` and `aria` are objects, what begins with "on" is a listener, the rest is a
// property of the element.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'label') element.setAttribute('aria-label', value);
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'aria') for (const [key, text] of Object.entries(value)) element.setAttribute(`aria-${key}`, text);
    else if (name === 'role' || name === 'for') element.setAttribute(name, value);
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

export function icon(name) {
  const {namespaceURI} = document.querySelector('svg');
  const svg = document.createElementNS(namespaceURI, 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(namespaceURI, 'use');
  use.setAttribute('href', `heddle/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

export function iconButton(name, label, onclick) {
  const button = make('button', {type: 'button', className: 'round', label, title: label, onclick}, icon(name));
  button.relabel = (text, otherIcon = name) => {
    if (button.title === text) return;
    button.title = text;
    button.setAttribute('aria-label', text);
    button.replaceChildren(icon(otherIcon));
  };
  return button;
}

// Only where it changes something: a text that is written again makes screen readers say it again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// `list` shows `items`, each in an element that stays the same as long as there is an item of its
// id: so focus and what is being dragged outlive an update. `create(item)` makes one, which has an
// `update(item)` of its own.
export function showList(list, items, create) {
  const old = new Map([...list.children].map((element) => [element.dataset.id, element]));
  const focused = document.activeElement;
  let next = list.firstElementChild;
  for (const item of items) {
    let element = old.get(item.id);
    old.delete(item.id);
    if (!element) {
      element = create(item);
      element.dataset.id = item.id;
    }
    element.update(item);
    if (element === next) next = next.nextElementSibling;
    else list.insertBefore(element, next);
  }
  for (const element of old.values()) {
    element.gone?.();
    element.remove();
  }
  if (focused !== document.activeElement && list.contains(focused)) focused.focus();
}

// For screen readers alone.
export function announce(text) {
  byId('announcement').textContent = text;
}

// For everybody; an empty text: the problem is over.
export function showProblem(text) {
  const problem = byId('problem');
  problem.textContent = text;
  problem.hidden = !text;
}

// What a control does, with what goes wrong shown to whoever used it.
export function guarded(action) {
  return async (...values) => {
    try {
      showProblem('');
      await action(...values);
    } catch (error) {
      if (!error.isSignInWanted) showProblem(error.message);
    }
  };
}

export function bytesText(bytes) {
  if (bytes < 1e6) return '0';
  return bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

export function timeText(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 100) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}
