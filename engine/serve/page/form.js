// The form of a workflow: a field for each of its literals, and what happened to the last job.
import {clientId} from './socket.js';
import {post, upload} from './api.js';
import {announce, byId, guarded, icon, make, setText, showProblem} from './dom.js';
import {literalsOf, readWorkflow} from './workflow.js';
import {parseJson, writeJson} from './json.js';

const kKept = 'heddle-workflow';  // in localStorage: {name, prompt}
const kHighestSeed = 2 ** 48;     // beyond what a number holds exactly, there is no use in luck

let prompt = null, name = '';
let fields = [];  // {id, name, read(), fail(text), dice}
let submitted = () => {};

function keep() {
  try {
    localStorage.setItem(kKept, writeJson({name, prompt}));
  } catch {
    // Without room for it the page works as well.
  }
}

function numberOf(text, field) {
  if (field.isWhole && /^-?\d+$/.test(text)) {
    const whole = BigInt(text);
    return Number.isSafeInteger(Number(whole)) ? Number(whole) : whole;
  }
  return Number(text);
}

function numberInput(field, id) {
  // What the arrows step by; any value between may be typed.
  const input = make('input', {type: 'text', id, inputMode: field.isWhole ? 'numeric' : 'decimal', autocomplete: 'off',
                               value: String(field.value)});
  const check = () => {
    const value = numberOf(input.value.trim(), field);
    const isNumber = input.value.trim() !== '' && (typeof value === 'bigint' || Number.isFinite(value));
    const isRight = isNumber && !(value < field.min) && !(value > field.max) && !(field.isWhole && typeof value === 'number' && !Number.isInteger(value));
    const range = [field.min !== undefined && `from ${field.min}`, field.max !== undefined && `to ${field.max}`].filter(Boolean).join(' ');
    return isRight ? '' : `${field.isWhole ? 'A whole number' : 'A number'}${range ? ` ${range}` : ''}`;
  };
  input.addEventListener('keydown', (event) => {
    const step = {ArrowUp: 1, ArrowDown: -1}[event.key];
    if (!step || check()) return;
    event.preventDefault();
    const by = field.step ?? (field.isWhole ? 1 : 0.1), old = numberOf(input.value.trim(), field);
    let value = typeof old === 'bigint' ? old + BigInt(step * Math.round(by)) : Number((old + step * by).toFixed(6));
    if (value < field.min) value = field.min;
    if (value > field.max) value = field.max;
    input.value = String(value);
    input.dispatchEvent(new Event('input', {bubbles: true}));
  });
  return {input, read: () => numberOf(input.value.trim(), field), check};
}

function choiceInput(field, id) {
  const input = make('select', {id});
  const add = (value, isMissing = false) =>
    input.append(make('option', {value: String(value), selected: value === field.value}, isMissing ? `${value} (not there)` : String(value)));
  if (!field.choices.includes(field.value)) add(field.value, true);
  field.choices.forEach((choice) => add(choice));
  const read = () => field.choices.find((choice) => String(choice) === input.value) ?? input.value;
  return {input, read, check: () => '', add};
}

function controlFor(field, id) {
  if (field.kind === 'number') return numberInput(field, id);
  if (field.kind === 'choice') return choiceInput(field, id);
  if (field.kind === 'switch') {
    const input = make('input', {type: 'checkbox', id, checked: field.value});
    return {input, read: () => input.checked, check: () => ''};
  }
  const input = field.isLong ? make('textarea', {id, rows: 3, value: field.value, spellcheck: true})
                             : make('input', {type: 'text', id, value: field.value});
  return {input, read: () => input.value, check: () => ''};
}

// A picture of one's own for a node that takes files of the input folder.
function uploadControl(field, control, label) {
  const input = make('input', {type: 'file', className: 'unseen', accept: 'image/*', label: `Upload a picture for ${label}`});
  input.addEventListener('change', guarded(async () => {
    if (!input.files[0]) return;
    const uploaded = await upload(input.files[0]);
    if (!field.choices.includes(uploaded)) {
      field.choices.push(uploaded);
      control.add(uploaded);
    }
    control.input.value = uploaded;
    control.input.dispatchEvent(new Event('input', {bubbles: true}));
  }));
  return make('label', {className: 'button upload'}, icon('open'), 'Upload', input);
}

function row(group, field) {
  const id = `field-${group.id}-${field.name}`, label = `${group.title}: ${field.name}`;
  const control = controlFor(field, id);
  const fault = make('p', {className: 'fault', id: `${id}-fault`});
  control.input.setAttribute('aria-describedby', fault.id);
  const fail = (text) => {
    setText(fault, text);
    control.input.toggleAttribute('aria-invalid', Boolean(text));
    if (text) control.input.setAttribute('aria-invalid', 'true');
  };
  control.input.addEventListener('input', () => {
    const text = control.check();
    fail(text);
    if (text) return;
    prompt[group.id].inputs[field.name] = control.read();
    keep();
  });
  const entry = {id: group.id, name: field.name, control, fail};
  const element = make('div', {className: `field ${field.kind}${field.isSeed ? ' seed' : ''}${field.isUpload ? ' uploads wide' : ''}`},
                       make('label', {htmlFor: id}, field.name.replaceAll('_', ' ')), control.input);
  if (field.isUpload) element.append(uploadControl(field, control, label));
  if (field.isSeed) {
    entry.dice = make('input', {type: 'checkbox'});
    element.append(make('label', {className: 'dice'}, entry.dice, 'New each time'));
  }
  element.append(fault);
  fields.push(entry);
  return element;
}

function groupElement(group) {
  const type = group.type === group.title ? '' : group.type;
  const legend = make('legend', {}, group.title, make('span', {className: 'type'}, type));
  const element = make('fieldset', {}, legend);
  if (!group.isKnown) element.append(make('p', {className: 'fault'}, `This server has no node ${group.type}.`));
  element.append(...group.fields.map((field) => row(group, field)));
  return element;
}

export async function showWorkflow(given, givenName) {
  const groups = await literalsOf(given);
  prompt = given;
  name = givenName;
  fields = [];
  byId('field-groups').replaceChildren(...groups.map(groupElement));
  setText(byId('workflow-name'), name);
  byId('fields').hidden = false;
  byId('drop-hint').hidden = true;
  keep();
}

async function open(file) {
  await showWorkflow(await readWorkflow(file), file.name);
  announce(`${file.name} is open`);
}

function rollSeeds() {
  for (const {control, dice} of fields) {
    if (!dice?.checked) continue;
    control.input.value = String(Math.floor(Math.random() * kHighestSeed));
    control.input.dispatchEvent(new Event('input', {bubbles: true}));
  }
}

// What the server says of nodes, at their fields; the rest is thrown.
function showNodeErrors(error) {
  let isShown = false;
  for (const [id, {errors}] of Object.entries(error.answer?.error?.node_errors ?? {}))
    for (const one of errors ?? []) {
      const field = fields.find((other) => other.id === id && other.name === one.extra_info?.input_name);
      field?.fail(`${one.message}${one.details ? `: ${one.details}` : ''}`);
      isShown ||= Boolean(field);
    }
  if (isShown) error.message += ' See the marked fields.';
  throw error;
}

async function submit() {
  fields.forEach(({control, fail}) => fail(control.check()));
  const wrong = fields.find(({control}) => control.check());
  if (wrong) {
    wrong.control.input.focus();
    throw new Error('One of the fields has no valid value.');
  }
  const copies = Math.min(100, Math.max(1, Number(byId('copies').value) || 1));
  for (let i = 0; i < copies; ++i) {
    rollSeeds();
    const {jobs: [job]} = await post('v1/jobs', {workflow: prompt, client: clientId()}).catch(showNodeErrors);
    submitted(job.id);
  }
  announce(copies > 1 ? `${copies} jobs are queued` : 'The job is queued');
}

function takeDrops() {
  let depth = 0;  // of elements that the file is over
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  const mark = () => document.body.classList.toggle('dropping', depth > 0);
  const on = (type, change) => addEventListener(type, (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = Math.max(0, change(event));
    mark();
  });
  on('dragenter', () => depth + 1);
  on('dragleave', () => depth - 1);
  on('dragover', () => depth);
  on('drop', (event) => {
    const file = event.dataTransfer.files[0];
    if (file) guarded(open)(file);
    return 0;
  });
}

// `onSubmitted(id)` is called for each job that was taken.
export async function startForm(onSubmitted) {
  submitted = onSubmitted;
  byId('file').addEventListener('change', guarded(async ({target}) => {
    const [file] = target.files;
    target.value = '';
    if (file) await open(file);
  }));
  byId('fields').addEventListener('submit', (event) => {
    event.preventDefault();
    guarded(submit)();
  });
  takeDrops();
  const kept = localStorage.getItem(kKept);
  if (!kept) return;
  try {
    const {prompt: last, name: lastName} = parseJson(kept);
    await showWorkflow(last, lastName);
  } catch (error) {
    localStorage.removeItem(kKept);
    showProblem(`The last workflow could not be opened again: ${error.message}`);
  }
}
