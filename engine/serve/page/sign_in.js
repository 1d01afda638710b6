// Signing in and out: the key is shown once, and the browser keeps a cookie that scripts cannot read.
import {ask, get, signOut} from './api.js';
import {byId, guarded, setText} from './dom.js';

// Where the front end stands, for whoever was on the way there.
const isOnWayToFrontEnd = new URLSearchParams(location.search).get('then') === 'front-end';

let hasKey = false;  // the server, one that it asks for

function show(isSigningIn) {
  byId('sign-in').hidden = !isSigningIn;
  for (const part of ['work', 'tabs', 'skip', 'connection']) byId(part).hidden = isSigningIn;
  byId('sign-out').hidden = isSigningIn || !hasKey;
  if (isSigningIn) byId('api-key').focus();
}

// What is for administrators is not shown to others: the server would refuse it.
async function letIn(proceed) {
  if (isOnWayToFrontEnd) {
    location.replace('./');
    return;
  }
  const {user, role} = await get('v1/session');
  document.documentElement.dataset.role = role ?? 'admin';
  setText(byId('sign-out'), user ? `Sign out ${user}` : 'Sign out');
  show(false);
  proceed();
}

// Calls `proceed` as soon as the server lets this browser in.
export async function signIn(proceed) {
  const {needs_key: needsKey, is_signed_in: isSignedIn} = await get('v1/session');
  hasKey = needsKey;
  byId('sign-out').addEventListener('click', guarded(async () => {
    await signOut();
    location.reload();
  }));
  byId('sign-in-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      await ask('POST', 'v1/session', {api_key: byId('api-key').value});
    } catch (error) {
      setText(byId('sign-in-problem'), error.status === 401 ? 'This is not the key.' : error.message);
      byId('api-key').select();
      return;
    }
    byId('api-key').value = '';
    setText(byId('sign-in-problem'), '');
    await letIn(proceed);
  });
  if (!needsKey || isSignedIn) await letIn(proceed);
  else show(true);
}
