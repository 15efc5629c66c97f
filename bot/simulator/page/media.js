// What messages hold besides text: photos, albums, recordings, films, files, and the viewer of photos.
import { fileURL } from './api.js';
import { $, bytes, h } from './dom.js';
import { state } from './app.js';

const SIGNS = { location: '⌖', venue: '⌖', contact: '☺', poll: '▤', dice: '⚄' };

// attachment returns what shows the file of one message.
export function attachment(view, m) {
  const a = m.attachment;
  if (!a.file_id) return h('p', { class: 'file' }, h('span', { class: 'file-sign', 'aria-hidden': 'true' }, SIGNS[a.kind] || '·'), `${a.name || a.kind}`);
  switch (a.kind) {
    case 'photo':
      return photo(view, m);
    case 'voice': case 'audio':
      return player(view, m, a);
    case 'video': case 'video_note': case 'animation':
      return h('video', { class: 'film', src: fileURL(view.me, a.file_id), controls: true, preload: 'metadata', playsinline: true, 'aria-label': `Video from ${m.name}` });
    default:
      return file(view, a);
  }
}

// album returns the files of several messages as one: photos side by side, others below each other.
export function album(view, list) {
  const pictures = list.filter((m) => ['photo', 'video'].includes(m.attachment.kind));
  if (pictures.length === list.length) return h('div', { class: `album of-${Math.min(list.length, 5)}` }, list.map((m) => attachment(view, m)));
  return h('div', {}, list.map((m) => attachment(view, m)));
}

function photo(view, m) {
  const a = m.attachment;
  const size = a.width ? { width: a.width, height: a.height } : {};
  return h('button', {
    type: 'button', class: 'photo', 'data-photo': a.file_id, 'aria-label': `Photo from ${m.name}${m.text ? `: ${m.text}` : ''}, open`,
    onclick: (e) => { e.stopPropagation(); open(m); },
  }, h('img', { src: fileURL(view.me, a.file_id), alt: '', ...size }));
}

function file(view, a) {
  return h('a', { class: 'file', href: fileURL(view.me, a.file_id), download: a.name || a.kind, onclick: (e) => e.stopPropagation() },
    h('span', { class: 'file-sign', 'aria-hidden': 'true' }, '↓'),
    h('span', {}, h('strong', {}, a.name || a.kind), h('small', {}, [a.size ? bytes(a.size) : '', a.mime].filter(Boolean).join(' · '))));
}

const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, '0')}`;

// Players by whose they are and of what: a message that is drawn again keeps its player, which may be playing.
const players = new Map();
const PLAYERS = 200;

function player(view, m, a) {
  const key = `${view.me} ${view.chat} ${m.message_id} ${a.file_id}`;
  const el = players.get(key) || newPlayer(view, m, a);
  players.delete(key);
  players.set(key, el); // the newest last
  if (players.size > PLAYERS) players.delete(players.keys().next().value);
  return el;
}

// newPlayer plays a recording. Recordings of browsers do not say how long they are; Telegram does.
function newPlayer(view, m, a) {
  const sound = new Audio();
  sound.preload = 'none';
  sound.src = fileURL(view.me, a.file_id);
  const long = () => (Number.isFinite(sound.duration) && sound.duration > 0 ? sound.duration : a.duration || 0);
  const what = a.kind === 'voice' ? `Voice message from ${m.name}` : a.name || `Audio from ${m.name}`;
  const button = h('button', { type: 'button', class: 'play', 'aria-label': `Play: ${what}` }, '▶');
  const bar = h('input', { type: 'range', min: '0', max: '1000', value: '0', 'aria-label': `Position in: ${what}` });
  const left = h('small', { class: 'left' }, long() ? clock(long()) : bytes(a.size || 0));
  const show = () => {
    button.textContent = sound.paused ? '▶' : '❚❚';
    button.setAttribute('aria-label', `${sound.paused ? 'Play' : 'Pause'}: ${what}`);
    if (long()) bar.value = String(Math.round(1000 * sound.currentTime / long()));
    if (long()) left.textContent = sound.currentTime > 0 ? `${clock(sound.currentTime)} / ${clock(long())}` : clock(long());
  };
  for (const event of ['play', 'pause', 'timeupdate', 'durationchange', 'ended']) sound.addEventListener(event, show);
  sound.addEventListener('error', () => { left.textContent = 'this browser cannot play it'; });
  button.addEventListener('click', (e) => {
    e.stopPropagation();
    if (sound.paused) sound.play().catch(() => { left.textContent = 'this browser cannot play it'; });
    else sound.pause();
  });
  bar.addEventListener('input', () => { if (long()) sound.currentTime = Number(bar.value) / 1000 * long(); });
  const picture = a.kind === 'voice' ? waveform(sound.src, bar, sound, long) : null;
  return h('div', { class: 'player', onclick: (e) => e.stopPropagation() }, button,
    h('div', { class: picture ? 'player-text waved' : 'player-text' }, a.kind === 'audio' && a.name ? h('strong', {}, a.name) : null, bar, picture), left, sound);
}

const WAVES = 44; // strokes of a waveform
const LOUD = 4 << 20; // bytes of a recording that is looked through

// waveform draws how loud a recording is, and how far it has been played. What cannot be decoded stays flat.
function waveform(src, bar, sound, long) {
  const strokes = Array.from({ length: WAVES }, () => h('i'));
  const box = h('span', { class: 'wave', 'aria-hidden': 'true' }, strokes);
  const show = () => {
    const played = long() ? Math.round(WAVES * (Number(bar.value) / 1000)) : 0;
    strokes.forEach((s, i) => s.classList.toggle('played', i < played));
  };
  for (const event of ['timeupdate', 'ended', 'seeked']) sound.addEventListener(event, show);
  bar.addEventListener('input', show);
  loudness(src).then((list) => strokes.forEach((s, i) => { s.style.height = `${Math.round(12 + 88 * list[i])}%`; })).catch(() => box.classList.add('flat'));
  return box;
}

// loudness of the parts of a recording, from 0 to 1.
async function loudness(src) {
  const response = await fetch(src);
  const raw = response.ok ? await response.arrayBuffer() : new ArrayBuffer(0);
  if (!raw.byteLength || raw.byteLength > LOUD) throw new Error('not decoded');
  const samples = (await new OfflineAudioContext(1, 1, 8000).decodeAudioData(raw)).getChannelData(0);
  const size = Math.max(1, Math.floor(samples.length / WAVES));
  const list = Array.from({ length: WAVES }, (_, i) => {
    let sum = 0;
    for (let k = i * size; k < Math.min((i + 1) * size, samples.length); k++) sum += samples[k] ** 2;
    return Math.sqrt(sum / size);
  });
  const most = Math.max(...list, 0.001);
  return list.map((n) => n / most);
}

// The viewer shows one photo in full, and the others of the conversation by the arrow keys.
let shown = { view: null, list: [], at: 0 };

export function viewer() {
  const box = $('viewer');
  $('viewer-close').addEventListener('click', () => box.close());
  $('viewer-before').addEventListener('click', () => step(-1));
  $('viewer-after').addEventListener('click', () => step(1));
  box.addEventListener('click', (e) => { if (e.target === box || e.target.id === 'viewer-image') box.close(); });
  box.addEventListener('keydown', (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (by) { e.preventDefault(); step(by); }
  });
  box.addEventListener('close', () => {
    $('viewer-image').removeAttribute('src');
    const from = shown.list.length ? document.querySelector(`[data-photo="${CSS.escape(shown.list[shown.at].attachment.file_id)}"]`) : null;
    if (from) from.focus({ preventScroll: true });
  });
}

function open(m) {
  const { view } = state; // newer than the one that the photo was drawn with
  const list = view.messages.filter((o) => o.attachment && o.attachment.kind === 'photo');
  shown = { view, list, at: Math.max(list.findIndex((o) => o.attachment.file_id === m.attachment.file_id), 0) };
  step(0);
  if (!$('viewer').open) $('viewer').showModal();
  $('viewer-close').focus();
}

function step(by) {
  shown.at = Math.min(Math.max(shown.at + by, 0), shown.list.length - 1);
  const m = shown.list[shown.at];
  $('viewer-image').src = fileURL(shown.view.me, m.attachment.file_id);
  $('viewer-image').alt = `Photo from ${m.name}`;
  $('viewer-text').textContent = m.text || '';
  $('viewer-count').textContent = shown.list.length > 1 ? `${m.name} · ${shown.at + 1} of ${shown.list.length}` : m.name;
  $('viewer-save').href = fileURL(shown.view.me, m.attachment.file_id);
  $('viewer-save').download = 'photo';
  $('viewer-before').disabled = shown.at === 0;
  $('viewer-after').disabled = shown.at === shown.list.length - 1;
}
