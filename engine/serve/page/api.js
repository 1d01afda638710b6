// What the page asks of the server. Paths are relative, so that a proxy may put the server under a
// prefix.
import {parseJson, writeJson} from './json.js';

// What is called when the server wants its key first.
let wantSignIn = () => {};
export function onSignInWanted(call) {
  wantSignIn = call;
}

function reasonOf(text, status) {
  try {
    const {error} = JSON.parse(text);
    if (typeof error === 'string') return error;
    if (error?.message) return error.details ? `${error.message}: ${error.details}` : error.message;
  } catch {
    // Not everything that answers speaks JSON.
  }
  return text.length > 0 && text.length < 300 ? text : `The server answered with status ${status}.`;
}

// Ends what is asked within a session: see signOut().
let session = new AbortController();

// Its JSON, or null where there is none. What is refused is thrown: an Error with `status` and,
// where the server sent JSON, `answer`.
export async function ask(method, path, body, signal = session.signal) {
  const options = {method, headers: {}, signal};
  if (body !== undefined) {
    options.body = writeJson(body);
    options.headers['Content-Type'] = 'application/json';
  }
  let response, text;
  try {
    response = await fetch(path, options);
    text = await response.text();
  } catch {
    const error = new Error('The server does not answer. Is it running?');
    error.isSignInWanted = signal.aborted;  // nobody is told of what the page itself has ended
    throw error;
  }
  if (response.ok) return text ? parseJson(text) : null;
  const error = new Error(reasonOf(text, response.status));
  error.status = response.status;
  try {
    error.answer = parseJson(text);
  } catch {
    error.answer = null;
  }
  if (response.status === 401 && path !== 'v1/session') {
    error.isSignInWanted = true;
    wantSignIn();
  }
  throw error;
}

// What this page asks by itself, under way or later, is aborted first: behind it the server would refuse it.
export async function signOut() {
  session.abort();
  try {
    await ask('DELETE', 'v1/session', undefined, new AbortController().signal);
  } catch (error) {
    session = new AbortController();
    throw error;
  }
}

export const get = (path) => ask('GET', path);
export const post = (path, body = {}) => ask('POST', path, body);

export async function upload(file) {
  const form = new FormData();
  form.append('image', file);
  const response = await fetch('upload/image', {method: 'POST', body: form});
  if (!response.ok) throw new Error(`${file.name} was not taken: status ${response.status}`);
  const {name, subfolder} = await response.json();
  return subfolder ? `${subfolder}/${name}` : name;
}

// Where a file of a job's outputs is: {filename, subfolder, type}.
export function viewPath(file, preview) {
  const query = new URLSearchParams({filename: file.filename, subfolder: file.subfolder ?? '', type: file.type ?? 'output'});
  if (preview) query.set('preview', preview);
  return `view?${query}`;
}

// The definition of a node's class, asked for once; null: the server does not have it.
const classes = new Map();
export function nodeClass(name) {
  if (!classes.has(name))
    classes.set(name, get(`object_info/${encodeURIComponent(name)}`).then((all) => all[name] ?? null));
  return classes.get(name);
}
