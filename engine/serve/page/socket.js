// The server's messages: they come over a WebSocket, which is opened again whenever it ends.
import {parseJson} from './json.js';

const kLongestWait = 15000;  // ms, between two tries

// Of this tab: after a reload the server goes on with its messages. A tab that was duplicated has
// the id of the other one, and whoever comes last gets the messages.
export function clientId() {
  let id = sessionStorage.getItem('heddle-client');
  if (!id) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    id = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    sessionStorage.setItem('heddle-client', id);
  }
  return id;
}

// Frame 1: a picture. Frame 4: a picture, and before it what it belongs to.
function pictureOf(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8) return null;
  const kind = view.getUint32(0), second = view.getUint32(4);
  if (kind === 1) return {about: {}, blob: new Blob([buffer.slice(8)], {type: second === 2 ? 'image/png' : 'image/jpeg'})};
  if (kind !== 4 || 8 + second > buffer.byteLength) return null;
  const about = JSON.parse(new TextDecoder().decode(buffer.slice(8, 8 + second)));
  return {about, blob: new Blob([buffer.slice(8 + second)], {type: about.image_type})};
}

// handlers: message(type, data), picture({about, blob}), state('connected' or 'lost').
// Gives a function that ends it.
export function connect(handlers) {
  let socket = null, wait = 500, timer = 0, isOver = false;
  const open = () => {
    const url = new URL('ws', document.baseURI);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.searchParams.set('clientId', clientId());
    socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      wait = 500;
      socket.send(JSON.stringify({type: 'feature_flags', data: {supports_preview_metadata: true}}));
      handlers.state('connected');
    };
    socket.onmessage = ({data}) => {
      if (typeof data !== 'string') {
        const picture = pictureOf(data);
        if (picture) handlers.picture(picture);
        return;
      }
      const message = parseJson(data);
      handlers.message(message.type, message.data ?? {});
    };
    socket.onclose = () => {
      if (isOver) return;
      handlers.state('lost');
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, kLongestWait);
    };
  };
  open();
  return () => {
    isOver = true;
    clearTimeout(timer);
    socket.close();
  };
}
