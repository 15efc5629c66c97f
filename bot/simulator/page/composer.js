// Writing: the text field, answering, editing, files, the command menu.
import { base64, post } from './api.js';
import { $, h, hide, toast } from './dom.js';
import { refresh, state } from './app.js';
import { attached, batches, clear, encoded, preview, put, take, waiting } from './files.js';
import { shows } from './render.js';
import { stop, voice } from './voice.js';

let place = '';
const unsent = new Map(); // what was typed in a conversation and not sent

export function composer() {
  $('composer').addEventListener('submit', (e) => { e.preventDefault(); send(); });
  $('text').addEventListener('keydown', keys);
  $('text').addEventListener('input', () => { grow(); menu(); });
  attached(strip);
  voice(record);
  $('strip-close').addEventListener('click', cancel);
}

function keys(e) {
  if (e.isComposing) return;
  const open = !$('commands').hidden;
  if (open && ['ArrowDown', 'ArrowUp'].includes(e.key)) {
    e.preventDefault();
    move(e.key === 'ArrowUp' ? -1 : 1);
  } else if (open && e.key === 'Tab' && chosen()) { // to write more behind it
    e.preventDefault();
    suggest(`${chosen().dataset.command} `);
    $('commands').hidden = true;
  } else if (open && e.key === 'Enter' && !e.shiftKey && chosen()) {
    e.preventDefault();
    chosen().click();
  } else if (e.key === 'Enter' && !e.shiftKey) {
    e.preventDefault();
    send();
  } else if (e.key === 'Escape') {
    if (open) $('commands').hidden = true;
    else cancel();
  } else if (e.key === 'ArrowUp' && $('text').value === '') {
    const own = state.view ? state.view.messages.filter((m) => m.from === state.me && m.text).pop() : null;
    if (own) { e.preventDefault(); edit(own.message_id); }
  }
}

const find = (id) => (state.view && id ? state.view.messages.find((m) => m.message_id === id) : null);

// suggest puts words into the text field.
export function suggest(text) {
  $('text').value = text;
  grow();
  $('text').focus();
}

// replyTo answers a message; quote is the part of it that is quoted.
export function replyTo(id, quote = '') {
  Object.assign(state, { reply: id, quote, editing: 0 });
  strip();
  $('text').focus();
}

export function edit(id) {
  const m = find(id);
  if (!m) return;
  Object.assign(state, { editing: id, reply: 0, quote: '' });
  strip();
  suggest(m.text);
}

function cancel() {
  if (state.editing) suggest('');
  Object.assign(state, { reply: 0, quote: '', editing: 0 });
  clear();
  strip();
}

function strip() {
  const m = find(state.editing || state.reply);
  const parts = [];
  if (m) parts.push(h('strong', {}, state.editing ? 'Edit' : `${state.quote ? 'Quote' : 'Reply to'} ${m.name}`), h('span', {}, state.quote || m.text || (m.attachment ? m.attachment.name || m.attachment.kind : '')));
  if (waiting()) parts.push(preview());
  hide($('strip'), parts.length === 0, () => $('text'));
  $('strip-text').replaceChildren(...parts);
}

function grow() {
  $('text').style.height = 'auto';
  $('text').style.height = `${Math.min($('text').scrollHeight, 160)}px`;
}

// Telegram's limits, in UTF-16 units.
const MESSAGE = 4096;
const CAPTION = 1024;

// pieces cuts what is too long for one message, as Telegram's clients do: at a line break, else between words.
export function pieces(text, limit = MESSAGE) {
  const out = [];
  let rest = text;
  while (rest.length > limit) {
    const part = rest.slice(0, limit + 1);
    let at = Math.max(part.lastIndexOf('\n'), -1);
    if (at < limit / 2) at = Math.max(at, part.lastIndexOf(' '));
    if (at < limit / 2) at = /[\uD800-\uDBFF]/.test(rest[limit - 1]) ? limit - 1 : limit;
    out.push(rest.slice(0, at));
    rest = rest.slice(at).replace(/^[ \n]/, '');
  }
  if (rest.trim() || out.length === 0) out.push(rest);
  return out.filter((p) => p.trim() || text.trim() === '');
}

async function send() {
  const text = $('text').value;
  const { me, chat, thread, reply, quote, editing } = state;
  if (!text.trim() && !waiting()) return;
  if (editing && text.length > MESSAGE) {
    toast(`A message has at most ${MESSAGE} characters; this one has ${text.length}. Shorten it.`, true);
    return;
  }
  const files = editing ? { files: [] } : take();
  suggest('');
  $('commands').hidden = true;
  Object.assign(state, { reply: 0, quote: '', editing: 0, unseen: 0 });
  strip();
  $('scroll').scrollTop = $('scroll').scrollHeight;
  try {
    if (editing) {
      await post('edit', { me, chat, message: editing, text });
    } else {
      unsaid = text;
      await say({ me, chat, thread, reply_to: reply, quote }, text, files);
    }
  } catch (err) {
    toast(err.message, true);
    if ($('text').value === '') suggest(editing ? text : unsaid); // nothing typed may get lost
    if (files.files.length && !waiting()) put(files);
  }
  refresh();
}

// command sends a command that was chosen from a message or a menu, if it only shows something. Another one, such as one
// that decides about the card that names it, is put into the text field, with its argument.
export async function command(text, argument = '') {
  const { view, me, chat, thread } = state;
  const full = chat < 0 && !text.includes('@') ? `${text}@${view.bot_user}` : text;
  if (!shows(text)) {
    if ($('text').value.trim()) toast('The text field is not empty: send or clear it first.', true);
    else suggest(`${full}${argument} `);
    $('text').focus();
    return;
  }
  try {
    await post('say', { me, chat, thread, text: full });
  } catch (err) {
    toast(err.message, true);
  }
  $('scroll').scrollTop = $('scroll').scrollHeight;
  refresh();
}

let unsaid = ''; // what of a long text was not sent yet

// say sends a text as one message or several; files go out first, with the text below them when that is short enough.
async function say(place, text, files) {
  let parts = pieces(text);
  const reply = { reply_to: place.reply_to, quote: place.quote };
  Object.assign(place, { reply_to: 0, quote: '' });
  const below = text.length <= CAPTION ? text : '';
  for (const [i, batch] of batches(files).entries()) {
    await post('say', { ...place, ...(i === 0 ? reply : {}), text: i === 0 ? below : '', files: await encoded(batch) });
    files.files = files.files.slice(batch.files.length); // what was sent is not sent again when the rest fails
    if (i === 0 && below) unsaid = '';
    if (i === 0 && (below || !text.trim())) parts = [];
    if (i === 0) Object.assign(reply, { reply_to: 0, quote: '' });
  }
  while (parts.length > 0) {
    unsaid = parts.join('\n');
    await post('say', { ...place, ...reply, text: parts[0] });
    Object.assign(reply, { reply_to: 0, quote: '' });
    parts = parts.slice(1);
  }
}

// record sends a recording as a voice message.
async function record(file, duration) {
  const { me, chat, thread, reply } = state;
  Object.assign(state, { reply: 0, quote: '', unseen: 0 });
  strip();
  try {
    await post('say', { me, chat, thread, reply_to: reply, files: [{ name: file.name, mime: file.type, as: 'voice', duration, data: await base64(file) }] });
  } catch (err) {
    toast(err.message, true);
  }
  refresh();
}

const items = () => [...$('commands').children];
const chosen = () => items().find((el) => el.getAttribute('aria-selected') === 'true');

function move(step) {
  const all = items();
  const at = all.indexOf(chosen());
  const next = all[(at + step + all.length) % all.length];
  for (const el of all) el.setAttribute('aria-selected', String(el === next));
  next.scrollIntoView({ block: 'nearest' });
  point();
}

// point tells screen readers which command is chosen while the caret stays in the text.
function point() {
  if ($('commands').hidden || !chosen()) $('text').removeAttribute('aria-activedescendant');
  else $('text').setAttribute('aria-activedescendant', chosen().id);
}

// menu offers the bot's commands while the text begins with a slash.
function menu() {
  const { view } = state;
  const match = /^\/([a-z0-9_]*)$/.exec($('text').value);
  const fits = match && view ? view.commands.filter((c) => c.command.startsWith(match[1])) : [];
  $('commands').hidden = fits.length === 0;
  $('commands').replaceChildren(...fits.map((c, i) => h('li', {
    role: 'option', id: `command-${i}`, 'aria-selected': String(i === 0), 'data-command': `/${c.command}${view.chat < 0 ? `@${view.bot_user}` : ''}`,
    onclick: (e) => { $('text').value = e.currentTarget.dataset.command; send(); },
  }, h('strong', {}, `/${c.command}`), h('span', {}, c.text))));
  point();
}

export function showComposer(view) {
  const now = `${view.me}/${view.chat}/${view.thread}`;
  if (now !== place) {
    if (place) unsent.set(place, $('text').value);
    place = now;
    clear();
    stop(false);
    $('text').value = unsent.get(now) || '';
    $('commands').hidden = true;
    grow();
    strip();
    if (matchMedia('(pointer: fine)').matches && (document.activeElement === document.body || document.activeElement === null)) $('text').focus({ preventScroll: true });
  }
  const me = view.people.find((p) => p.id === view.me).name;
  $('text').placeholder = view.chat < 0 ? `Write as ${me} … @${view.bot_user} calls the bot` : `Write as ${me} …`;
  $('hint').textContent = 'Enter sends · Shift+Enter new line · ↑ edits · paste or drop files';
}
