// Files to send: chosen, pasted, dropped or recorded; what they are sent as; what they look like before they are sent.
import { base64 } from './api.js';
import { $, bytes, h, toast } from './dom.js';

const MOST = 20 << 20; // what a bot can download
const PHOTO = 10 << 20;
const ALBUM = 10;

let files = [];
let plain = false; // send pictures as files
let changed = () => {};

export function attached(onchange) {
  changed = onchange;
  $('file').addEventListener('change', () => {
    add([...$('file').files]);
    $('file').value = '';
  });
  $('text').addEventListener('paste', (e) => {
    const list = [...e.clipboardData.files];
    if (list.length === 0) return;
    e.preventDefault();
    add(list);
  });
  drop();
}

// drop takes files that are dragged onto the conversation.
function drop() {
  const area = document.querySelector('.chat');
  const mine = (e) => e.dataTransfer && [...e.dataTransfer.types].includes('Files');
  area.addEventListener('dragover', (e) => { if (mine(e)) { e.preventDefault(); area.classList.add('dropping'); } });
  area.addEventListener('dragleave', (e) => { if (!area.contains(e.relatedTarget)) area.classList.remove('dropping'); });
  area.addEventListener('drop', (e) => {
    if (!mine(e)) return;
    e.preventDefault();
    area.classList.remove('dropping');
    add([...e.dataTransfer.files]);
  });
}

function add(list) {
  for (const f of list) {
    if (f.size === 0) toast(`${f.name} is empty.`, true);
    else if (f.size > MOST) toast(`${f.name} has ${bytes(f.size)}. A bot can get at most 20 MB.`, true);
    else files.push(f);
  }
  changed();
  $('text').focus();
}

export const waiting = () => files.length > 0;

export function clear() {
  files = [];
  plain = false;
}

// take returns the files and forgets them; put brings them back when they could not be sent.
export function take() {
  const out = { files, plain };
  clear();
  return out;
}

export function put(taken) {
  ({ files, plain } = taken);
  changed();
}

// as says what a file is sent as, like in clients.
function as(f, asFiles) {
  if (asFiles) return 'document';
  if (/^image\/(jpeg|png|webp)$/.test(f.type) && f.size <= PHOTO) return 'photo';
  if (f.type === 'video/mp4') return 'video';
  if (f.type.startsWith('audio/')) return 'audio';
  return 'document';
}

const group = (kind) => (kind === 'video' ? 'photo' : kind);

// batches puts files into messages: what goes together is an album, within its limits.
export function batches(taken) {
  const out = [];
  for (const f of taken.files) {
    const kind = as(f, taken.plain);
    const last = out[out.length - 1];
    if (last && last.group === group(kind) && last.files.length < ALBUM && last.size + f.size <= MOST) {
      last.files.push({ file: f, as: kind });
      last.size += f.size;
    } else {
      out.push({ group: group(kind), size: f.size, files: [{ file: f, as: kind }] });
    }
  }
  return out;
}

export const encoded = (batch) => Promise.all(batch.files.map(async (f) => ({
  name: f.file.name.slice(-120), mime: f.file.type, as: f.as, duration: f.duration || 0, data: await base64(f.file),
})));

// preview shows what waits to be sent.
export function preview() {
  const media = files.some((f) => ['photo', 'video'].includes(as(f, false)));
  const size = files.reduce((n, f) => n + f.size, 0);
  const one = files.length === 1;
  const asFile = media ? h('label', { class: 'as-file' }, h('input', { type: 'checkbox', id: 'as-file', checked: plain, onchange: (e) => { plain = e.target.checked; changed(); } }), one ? 'as a file' : 'as files') : null;
  return h('div', { class: 'preview' },
    h('ul', { class: 'thumbs', 'aria-label': 'Files to send' }, files.map((f, i) => h('li', {}, thumb(f),
      h('button', { type: 'button', class: 'drop', 'aria-label': `Remove ${f.name}`, title: `Remove ${f.name}`, onclick: () => { files.splice(i, 1); changed(); $('text').focus(); } }, '×')))),
    h('div', { class: 'preview-text' },
      h('strong', {}, one ? `${files[0].name} · ${bytes(size)}` : `${files.length} files · ${bytes(size)}`),
      h('span', {}, media && !plain ? 'The bot looks at pictures when its model can see.' : 'The bot stores it in the workspace of this conversation and reads what it can.'), asFile));
}

// thumb draws a picture small; the page's policy allows no picture that does not come from the server.
function thumb(f) {
  if (as(f, plain) !== 'photo') return h('span', { class: 'thumb', 'aria-hidden': 'true' }, f.name.includes('.') ? f.name.split('.').pop().slice(0, 4) : '↑');
  const canvas = h('canvas', { class: 'thumb', width: '120', height: '120', role: 'img', 'aria-label': f.name });
  createImageBitmap(f).then((image) => {
    const scale = Math.max(120 / image.width, 120 / image.height);
    canvas.getContext('2d').drawImage(image, (120 - image.width * scale) / 2, (120 - image.height * scale) / 2, image.width * scale, image.height * scale);
    image.close();
  }).catch(() => canvas.replaceWith(h('span', { class: 'thumb', 'aria-hidden': 'true' }, '?')));
  return canvas;
}
