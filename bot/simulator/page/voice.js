// Recording a voice message.
import { $, toast } from './dom.js';

let recorder = null;
let began = 0;
let ticker = 0;
let done = () => {};

// voice prepares the button. send gets the recording and its seconds.
export function voice(send) {
  done = send;
  const can = navigator.mediaDevices && window.MediaRecorder;
  $('record').hidden = !can;
  if (can) $('record').addEventListener('click', () => (recorder ? stop(true) : start()));
  $('record-discard').addEventListener('click', () => { stop(false); $('record').focus(); });
  $('record').addEventListener('keydown', (e) => { if (e.key === 'Escape' && recorder) stop(false); });
}

async function start() {
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    toast('The browser gave no microphone: there is none, or it was not allowed.', true);
    return;
  }
  const type = ['audio/ogg;codecs=opus', 'audio/webm;codecs=opus', 'audio/mp4'].find((t) => MediaRecorder.isTypeSupported(t)) || '';
  const chunks = [];
  const own = new MediaRecorder(stream, type ? { mimeType: type } : {});
  own.addEventListener('dataavailable', (e) => { if (e.data.size) chunks.push(e.data); });
  own.addEventListener('stop', () => {
    stream.getTracks().forEach((t) => t.stop());
    const kind = own.mimeType.split(';')[0] || 'audio/ogg';
    if (own.wanted && chunks.length) done(new File(chunks, `voice.${kind.split('/')[1]}`, { type: kind }), Math.max(1, Math.round((Date.now() - began) / 1000)));
  });
  recorder = own;
  began = Date.now();
  own.start();
  state(true);
}

export function stop(wanted) {
  if (!recorder) return;
  recorder.wanted = wanted;
  recorder.stop();
  recorder = null;
  state(false);
}

export const recording = () => recorder !== null;

function state(on) {
  const words = on ? 'Send the recording' : 'Record a voice message';
  $('record').classList.toggle('on', on);
  $('record').setAttribute('aria-label', words);
  $('record').title = words;
  $('record-time').hidden = !on;
  clearInterval(ticker);
  const tick = () => {
    const s = Math.floor((Date.now() - began) / 1000);
    $('record-text').textContent = `Recording ${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
  };
  if (!on) return;
  tick();
  ticker = setInterval(tick, 1000);
}
