// Workflows in the API form: {id: {class_type, inputs, _meta}}. Read from files, and what of them a
// person may fill in.
import {nodeClass} from './api.js';
import {parseJson} from './json.js';

const kPngStart = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The texts of a PNG by keyword: of its chunks tEXt, zTXt and iTXt.
async function pngTexts(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const latin = new TextDecoder('latin1'), utf8 = new TextDecoder();
  const texts = {};
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = view.getUint32(at);
    const type = latin.decode(bytes.subarray(at + 4, at + 8));
    const data = bytes.subarray(at + 8, at + 8 + length);
    at += 12 + length;
    if (!['tEXt', 'zTXt', 'iTXt'].includes(type)) continue;
    const end = data.indexOf(0);
    if (end < 0) continue;
    const keyword = latin.decode(data.subarray(0, end));
    if (type === 'tEXt') texts[keyword] = latin.decode(data.subarray(end + 1));
    if (type === 'zTXt') texts[keyword] = latin.decode(await inflated(data.subarray(end + 2)));
    if (type !== 'iTXt') continue;
    const language = data.indexOf(0, end + 3), translated = data.indexOf(0, language + 1);
    const text = data.subarray(translated + 1);
    texts[keyword] = utf8.decode(data[end + 1] === 1 ? await inflated(text) : text);
  }
  return texts;
}

function isNode(value) {
  return value !== null && typeof value === 'object' && typeof value.class_type === 'string';
}

function requirePrompt(value, name) {
  if (Array.isArray(value?.nodes))
    throw new Error(`${name} is a workflow as ComfyUI's interface saves it. Export it there with "Export (API)", and open that file.`);
  const prompt = isNode(Object.values(value ?? {})[0]) ? value : value?.prompt;
  const nodes = Object.entries(prompt ?? {});
  if (nodes.length === 0 || typeof prompt !== 'object')
    throw new Error(`${name} has no workflow in the API form: an object of nodes, each with a class_type.`);
  for (const [id, node] of nodes)
    if (!isNode(node)) throw new Error(`${name}: node "${id}" has no class_type.`);
  return prompt;
}

// Of a JSON file or a PNG; throws an Error for people.
export async function readWorkflow(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (kPngStart.every((byte, i) => bytes[i] === byte)) {
    const texts = await pngTexts(bytes);
    if (!texts.prompt) throw new Error(`${file.name} has no workflow in it: its metadata has no "prompt".`);
    return requirePrompt(parseJson(texts.prompt), file.name);
  }
  let value;
  try {
    value = parseJson(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new Error(`${file.name} is neither JSON nor a PNG: ${error.message}`);
  }
  return requirePrompt(value, file.name);
}

export function titleOfNode(prompt, id) {
  const node = prompt?.[id];
  return node?._meta?.title || node?.class_type || (id ? `node ${id}` : '');
}

// What a person would know a job by: its longest text, else what it saves under.
export function titleOfPrompt(prompt) {
  let best = '';
  for (const node of Object.values(prompt ?? {}))
    for (const value of Object.values(node?.inputs ?? {}))
      if (typeof value === 'string' && value.length > best.length) best = value;
  const text = best.trim().replace(/\s+/g, ' ');
  return text.length > 160 ? `${text.slice(0, 159)}…` : text || 'Untitled';
}

function isLink(value) {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string';
}

// Of an input's definition: ["INT", {min, max}] or [[choices], {...}].
function kindOf(definition, value) {
  const [type, options = {}] = definition ?? [];
  const choices = Array.isArray(type) ? type : type === 'COMBO' ? options.options : null;
  if (Array.isArray(choices)) return {kind: 'choice', choices, isUpload: options.image_upload === true};
  if (type === 'BOOLEAN' || typeof value === 'boolean') return {kind: 'switch'};
  if (type === 'INT' || type === 'FLOAT' || typeof value === 'number' || typeof value === 'bigint')
    return {kind: 'number', isWhole: type === 'INT', isSeed: Boolean(options.control_after_generate), ...options};
  return typeof value === 'string' ? {kind: 'text', isLong: Boolean(options.multiline)} : null;
}

// The literals of a workflow by node: [{id, title, type, fields: [{name, value, kind, ...}]}]. Those
// with a long text first, as these are what is changed most. A node without any is left out.
export async function literalsOf(prompt) {
  const classes = {};
  await Promise.all([...new Set(Object.values(prompt).map((node) => node.class_type))].map(async (name) => {
    classes[name] = await nodeClass(name);
  }));
  const groups = [];
  for (const [id, node] of Object.entries(prompt)) {
    const defined = classes[node.class_type]?.input ?? {};
    const fields = [];
    for (const [name, value] of Object.entries(node.inputs ?? {})) {
      if (isLink(value)) continue;
      const kind = kindOf(defined.required?.[name] ?? defined.optional?.[name], value);
      if (kind) fields.push({name, value, ...kind});
    }
    if (fields.length > 0)
      groups.push({id, title: titleOfNode(prompt, id), type: node.class_type, isKnown: classes[node.class_type] !== null, fields});
  }
  const hasLongText = (group) => group.fields.some((field) => field.isLong);
  return [...groups.filter(hasLongText), ...groups.filter((group) => !hasLongText(group))];
}
