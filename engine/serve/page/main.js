// The page as a whole: who is let in, what is begun, what is shown when something changes.
import {onSignInWanted} from './api.js';
import {announce, byId, setText, showProblem} from './dom.js';
import {signIn} from './sign_in.js';
import {connect} from './socket.js';
import {startForm} from './form.js';
import {findJob, known, onChange, refreshSoon, takeMessage, takePicture} from './jobs.js';
import {follow, showResult, showRunning, startRunning} from './running.js';
import {showQueue, startQueue} from './queue.js';
import {showGallery, startGallery} from './gallery.js';
import {startDevices} from './devices.js';

// Messages come faster than a screen shows them.
let isDrawing = false;
function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    showRunning();
    showResult();
    showQueue();
    showGallery();
    const active = (known.counts.running ?? 0) + (known.counts.pending ?? 0);
    document.title = active > 0 ? `(${active}) heddle` : 'heddle';
  });
}

const kEnds = {execution_success: 'A job is done', execution_error: 'A job has failed', execution_interrupted: 'A job was cancelled'};

function listen() {
  connect({
    message(type, data) {
      takeMessage(type, data);
      if (kEnds[type]) announce(`${kEnds[type]}: ${findJob(data.prompt_id)?.title ?? ''}`);
    },
    picture: takePicture,
    state(state) {
      const connection = byId('connection');
      setText(connection, state === 'connected' ? 'Connected' : 'Connection lost. Trying again.');
      connection.dataset.state = state;
      if (state === 'connected') refreshSoon(true);
    },
  });
}

async function start() {
  onChange(drawSoon);
  startRunning();
  startQueue();
  startGallery();
  startDevices();
  listen();
  await startForm((id) => {
    follow(id);
    refreshSoon();
  });
}

// A session that has ended on the server: the page begins anew, and asks for the key.
onSignInWanted(() => location.reload());
signIn(start).catch((error) => showProblem(error.message));
