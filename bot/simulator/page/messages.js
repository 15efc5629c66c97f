// The conversation in the middle.
import { fileURL, post } from './api.js';
import { $, alertBox, copy, day, dayOf, h, hide, reconcile, time, toast } from './dom.js';
import { home } from './bar.js';
import { refresh, state } from './app.js';
import { command, edit, replyTo, suggest } from './composer.js';
import { select } from './inspector.js';
import { album, attachment } from './media.js';
import { openMenu } from './menu.js';
import { commandsIn, render, tapWords } from './render.js';

const TRY = ['what files are here?', 'delete the temp files', 'remind me in 2 minutes'];
const REACTIONS = ['👍', '👎', '❤', '🔥', '😁', '🎉', '🤔', '👀'];
const ACTIONS = {
  typing: 'is typing', upload_document: 'is sending a file', upload_photo: 'is sending a photo', upload_voice: 'is sending a voice message',
  record_voice: 'is recording', find_location: 'is looking for a place', choose_sticker: 'is choosing a sticker',
};

let newest = 0; // id of the newest message that was announced
let aside = new Set(); // ephemeral messages that were announced
let stuck = true; // the reader is at the end

export function messages() {
  $('scroll').addEventListener('scroll', () => {
    stuck = atEnd();
    if (stuck) markRead();
    below();
  });
  $('to-end').addEventListener('click', () => {
    stuck = true;
    toEnd();
    home();
  });
  $('earlier').addEventListener('click', () => {
    state.limit += 200;
    stuck = false;
    refresh();
  });
  $('messages').addEventListener('keydown', keys);
  $('messages').addEventListener('contextmenu', (e) => {
    const row = e.target.closest('li.message');
    if (!row || !choices.has(row) || String(getSelection()) || e.target.closest('a, input, img, video, audio')) return; // the browser's own menu
    e.preventDefault();
    showMenu(row, e.clientX || e.clientY ? { x: e.clientX, y: e.clientY } : null);
  });
  // Photos grow when they arrive: who is at the end stays there.
  const follow = new ResizeObserver(() => {
    // The composer is below the messages, whatever room their scrollbar takes.
    document.documentElement.style.setProperty('--gutter', `${($('scroll').offsetWidth - $('scroll').clientWidth) / 2}px`);
    if (stuck) toEnd();
  });
  follow.observe($('scroll'));
  follow.observe($('messages'));
}

const atEnd = () => $('scroll').scrollHeight - $('scroll').scrollTop - $('scroll').clientHeight < 60;

function toEnd() {
  $('scroll').scrollTop = $('scroll').scrollHeight;
}

// below offers the way to the end, with the number of messages that are new there.
function below() {
  hide($('to-end'), stuck || atEnd(), reachable);
  // The date of what is on top stays there; those above it are behind it.
  const dates = [...$('messages').querySelectorAll('.date')];
  const top = $('scroll').getBoundingClientRect().top + 20;
  const current = dates.filter((d) => d.getBoundingClientRect().top <= top).pop();
  for (const d of dates) d.classList.toggle('past', d !== current && current !== undefined && dates.indexOf(d) < dates.indexOf(current));
  const { view } = state;
  const row = view ? view.chats.find((c) => c.chat === view.chat && c.thread === view.thread) : null;
  $('to-end-badge').hidden = !row || row.unread === 0;
  $('to-end-badge').textContent = row ? String(row.unread) : '';
}

// keys: arrows walk over the messages; Enter looks behind one, r answers it, c copies it, o goes to what it answers, e changes an own one, Delete takes it back, m opens its menu.
function keys(e) {
  const row = e.target.closest('li.message');
  if (!row || e.target !== row || e.ctrlKey || e.metaKey || e.altKey) return;
  const rows = [...$('messages').querySelectorAll('li.message')];
  const at = rows.indexOf(row);
  const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 }[e.key];
  const use = (name) => { const b = row.querySelector(`[data-act="${name}"]`); if (b) b.click(); };
  const act = {
    Enter: () => { if (row.dataset.message) select(Number(row.dataset.message)); },
    r: () => use('reply'), e: () => use('edit'), Delete: () => use('delete'),
    c: () => copy((row.querySelector('figure.pre code') || row.querySelector('.text') || row).textContent),
    m: () => showMenu(row),
    o: () => { const quote = row.querySelector('.quote'); if (quote) quote.click(); },
  }[e.key];
  if (to !== undefined) {
    e.preventDefault();
    const next = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    for (const r of rows) r.tabIndex = r === next ? 0 : -1;
    next.focus();
  } else if (act) {
    e.preventDefault();
    act();
  }
}

export function showMessages(view, moved) {
  if (moved) stuck = true;
  const row = view.chats.find((c) => c.chat === view.chat && c.thread === view.thread);
  $('chat-title').textContent = row ? row.title : '';
  const group = view.chat < 0 && row;
  $('chat-subtitle').textContent = group ? [row.group, row.subtitle].filter(Boolean).join(' · ') : `@${view.bot_user} · bot`;
  $('chat-avatar').textContent = group ? (row.group ? '#' : row.title[0]) : 'Z';
  $('chat-avatar').className = group ? (row.group ? 'avatar team' : 'avatar garden') : 'avatar zeph';
  hide($('earlier'), !view.more, reachable);
  const height = $('scroll').scrollHeight;
  reconcile($('messages'), items(view));
  if (stuck) toEnd();
  else if (!moved && view.more !== undefined && state.limit > 200 && $('scroll').scrollTop < 5) $('scroll').scrollTop += $('scroll').scrollHeight - height;
  rove();
  empty(view, row);
  $('typing').textContent = view.typing && !view.draft ? `${view.bot_name} ${ACTIONS[view.typing] || 'is busy'} …` : '';
  announce(view, moved);
  if (stuck) markRead();
  below();
}

// reachable is the message that Tab reaches.
const reachable = () => $('messages').querySelector('li.message[tabindex="0"]') || $('text');

// rove keeps exactly one message reachable by Tab.
function rove() {
  const rows = [...$('messages').querySelectorAll('li.message')];
  if (rows.length && !rows.some((r) => r.tabIndex === 0)) rows[rows.length - 1].tabIndex = 0;
}

function items(view) {
  const out = [];
  let today = '';
  let before = null;
  for (const list of albums(view.messages)) {
    const [m] = list;
    if (dayOf(m.date) !== today) {
      today = dayOf(m.date);
      out.push({ key: `day ${today}`, version: day(m.date), make: () => h('li', { class: 'day date' }, h('span', {}, day(m.date))) });
      before = null;
    }
    if (state.unseen && list.some((o) => o.message_id === state.unseen)) {
      out.push({ key: 'unseen', version: '', make: () => h('li', { class: 'unseen' }, h('span', {}, 'New messages')) });
      before = null;
    }
    const follows = before !== null && before.from === m.from && !before.service && new Date(m.date) - new Date(before.date) < 300000;
    const busy = [...state.pressing.keys()].filter((k) => k.startsWith(`${view.chat}/${m.ephemeral ? `e${m.ephemeral}` : m.message_id}/`));
    out.push({
      key: m.ephemeral ? `e ${view.me} ${view.chat} ${m.ephemeral}` : `m ${view.me} ${view.chat} ${m.message_id}`,
      version: JSON.stringify([list, follows, busy, state.selected !== 0 && list.some((o) => o.message_id === state.selected)]),
      make: () => (m.service ? service(m) : message(view, list, follows)),
    });
    before = m;
  }
  if (view.draft) out.push({ key: `draft ${view.draft.id}`, version: JSON.stringify(view.draft), make: () => draft(view) });
  return out;
}

// albums puts messages together that are one album.
function albums(list) {
  const out = [];
  for (const m of list) {
    const last = out[out.length - 1];
    if (m.album && m.attachment && last && last[0].album === m.album && last[0].from === m.from) last.push(m);
    else out.push([m]);
  }
  return out;
}

function service(m) {
  const words = { forum_topic_created: `${m.name} opened the topic “${m.topic || ''}”`, new_chat_members: `${m.name} joined`, left_chat_member: `${m.name} left` };
  return h('li', { class: 'day' }, h('span', {}, words[m.service] || m.service.replaceAll('_', ' ')));
}

// message shows one message, or the messages of an album as one.
function message(view, list, follows) {
  const m = list.find((o) => o.text) || list[0];
  const id = list[0].message_id;
  const mine = m.from === view.me;
  const chosen = state.selected !== 0 && list.some((o) => o.message_id === state.selected);
  const row = h('li', {
    class: ['message', mine ? 'mine' : '', m.from_bot ? 'bot-made' : '', follows ? 'follows' : '', chosen ? 'chosen' : '', m.ephemeral ? 'alone' : ''].join(' '),
    'data-message': id || null, 'data-all': list.map((o) => o.message_id).join(' '), tabindex: '-1', 'aria-label': spoken(list, m), 'aria-describedby': 'keys-help',
  },
  h('div', { class: 'stack' },
    h('div', { class: `bubble ${m.attachment && ['photo', 'video'].includes(m.attachment.kind) ? 'pictured' : ''}`, onclick: () => { if (m.from_bot && id && !String(getSelection())) select(id); } },
      !mine && !follows && view.chat < 0 ? h('strong', { class: `name n${m.from_bot ? 'zeph' : m.from}` }, m.name) : null,
      m.ephemeral ? h('small', { class: 'only' }, h('span', { 'aria-hidden': 'true' }, '◉ '), 'Only you see this') : null,
      m.rich ? h('small', { class: 'only' }, 'Rich message, as text') : null,
      m.reply ? h('button', { type: 'button', tabindex: '-1', class: m.quote ? 'quote cited' : 'quote', onclick: (e) => { e.stopPropagation(); jump(m.reply.id); } },
        m.reply.picture ? h('img', { class: 'cited-picture', src: fileURL(view.me, m.reply.picture), alt: 'Photo' }) : null,
        h('strong', {}, m.reply.name), h('span', {}, m.quote || m.reply.text)) : null,
      list.length > 1 ? album(view, list) : m.attachment ? attachment(view, m) : null,
      m.text ? h('div', { class: 'text' }, render(m.text, m.entities, command)) : null,
      h('span', { class: 'meta' }, m.edited ? h('span', { title: `edited ${m.edits} times, last ${time(m.edited_at)}` }, 'edited') : null, h('time', { datetime: m.date }, time(m.date)), ticks(list[list.length - 1]))),
    reactions(list),
    m.keyboard ? keyboard(view, m) : null),
  m.ephemeral ? null : actions(view, list, m, mine));
  if (!m.ephemeral) choices.set(row, { view, list, m, mine });
  return row;
}

// reactions of the bot and of people: one of people says whose it is.
function reactions(list) {
  const all = [...new Set(list.flatMap((o) => o.reactions || []))].map((sign) => ({ sign, who: '' }));
  for (const r of list.flatMap((o) => o.reacted || [])) {
    const known = all.find((o) => o.sign === r.emoji);
    if (known) known.who = [known.who, r.name].filter(Boolean).join(', ');
    else all.push({ sign: r.emoji, who: r.name });
  }
  if (!all.length) return null;
  return h('div', { class: 'reactions', role: 'img', 'aria-label': `Reactions: ${all.map((r) => [r.sign, r.who].filter(Boolean).join(' ')).join(' ')}` },
    all.map((r) => h('span', { 'aria-hidden': 'true', title: r.who || null }, r.sign, r.who.includes(',') ? h('small', {}, String(r.who.split(',').length)) : null)));
}

// choices are what the menu of a message is made from, by its element.
const choices = new WeakMap();

// showMenu opens the menu of a message at a place, or below its bubble.
function showMenu(row, at = null) {
  if (!choices.has(row)) return;
  const { view, list, m, mine } = choices.get(row);
  const box = row.querySelector('.bubble').getBoundingClientRect();
  const quote = quoted(row, m);
  const own = (m.reacted || []).find((r) => r.id === view.me);
  const react = (emoji) => attempt(post('react', { me: view.me, chat: view.chat, message: m.message_id, emoji })).then(refresh);
  openMenu(row, at || { x: box.left + 12, y: Math.min(box.bottom - 8, $('scroll').getBoundingClientRect().bottom - 80) }, REACTIONS, own ? own.emoji : '', react, [
    { text: quote ? 'Quote' : 'Reply', sign: '↩', act: () => replyTo(m.message_id, quote) },
    mine && m.text ? { text: 'Edit', sign: '✎', act: () => edit(m.message_id) } : null,
    m.text ? { text: 'Copy', sign: '❐', act: () => copy(m.text) } : null,
    ...(m.from_bot ? commandsIn(m.text).slice(0, 4).map(([c, argument]) => ({ text: tapWords(c, argument), sign: '/', act: () => command(c, argument) })) : []),
    m.from_bot ? { text: 'What happened', sign: 'i', act: () => select(list[0].message_id) } : null,
    mine ? { text: 'Delete', sign: '✕', danger: true, act: () => remove(view, list) } : null,
  ].filter(Boolean));
}

async function remove(view, list) {
  for (const o of list) await attempt(post('delete', { me: view.me, chat: view.chat, message: o.message_id }));
}

const KINDS = { photo: 'photo', voice: 'voice message', video: 'video', audio: 'audio file', document: 'file', video_note: 'video message', animation: 'GIF', sticker: 'sticker', location: 'location', contact: 'contact', poll: 'poll' };

// told is a message in words.
function told(list, m) {
  const files = list.filter((o) => o.attachment);
  const kind = files.length ? KINDS[files[0].attachment.kind] || files[0].attachment.kind : '';
  const what = files.length > 1 ? `album of ${files.length}` : kind && files[0].attachment.name ? `${kind} ${files[0].attachment.name}` : kind;
  const keys = (m.keyboard || []).flat().map((b) => b.text);
  return [what, m.text, keys.length ? `Buttons: ${keys.join(', ')}` : ''].filter(Boolean).join('. ');
}

const spoken = (list, m) => `${m.name}, ${time(m.date)}${m.ephemeral ? ', only for you' : ''}: ${told(list, m).slice(0, 300)}`;

// ticks: one when Telegram has the message, two when the bot has fetched it.
function ticks(m) {
  if (!m.ticks) return null;
  const words = m.ticks === 2 ? 'the bot has it' : 'sent; the bot has not fetched it yet';
  return h('span', { class: 'ticks', role: 'img', 'aria-label': words, title: words }, m.ticks === 2 ? '✓✓' : '✓');
}

function jump(id) {
  const row = $('messages').querySelector(`[data-all~="${id}"]`);
  if (!row) return;
  row.scrollIntoView({ block: 'center' });
  for (const r of $('messages').querySelectorAll('li.message')) r.tabIndex = r === row ? 0 : -1;
  row.focus({ preventScroll: true });
  row.classList.add('flash');
  setTimeout(() => row.classList.remove('flash'), 1200);
}

function actions(view, list, m, mine) {
  // No stops of Tab: the keys of the message do the same. The selection of the text must survive the press: it is what gets quoted.
  const b = (label, sign, act) => h('button', {
    type: 'button', tabindex: '-1', 'data-act': label.toLowerCase(), 'aria-label': label, title: label,
    onpointerdown: (e) => e.preventDefault(), onclick: (e) => { e.stopPropagation(); act(e.currentTarget.closest('li')); },
  }, sign);
  return h('div', { class: 'actions' },
    b('Reply', '↩', (row) => replyTo(m.message_id, quoted(row, m))),
    mine && m.text ? b('Edit', '✎', () => edit(m.message_id)) : null,
    mine ? b('Delete', '✕', () => remove(view, list)) : null,
    b('More', '⋯', (row) => showMenu(row)),
    m.from_bot ? b('What happened', h('span', { class: 'info', 'aria-hidden': 'true' }, 'i'), () => select(list[0].message_id)) : null);
}

// quoted is what is selected of a message: a reply quotes it.
function quoted(row, m) {
  const selection = getSelection();
  const text = row.querySelector('.text');
  const words = String(selection).trim();
  return text && words && text.contains(selection.anchorNode) && text.contains(selection.focusNode) && m.text.includes(words) && words.length <= 1024 ? words : '';
}

async function attempt(promise) {
  try {
    return await promise;
  } catch (err) {
    toast(err.message, true);
    return null;
  }
}

function keyboard(view, m) {
  return h('div', { class: 'keyboard' }, m.keyboard.map((row, r) => h('div', { class: 'keys' }, row.map((b, c) => key(view, m, b, r, c)))));
}

function key(view, m, b, r, c) {
  const id = `${view.chat}/${m.ephemeral ? `e${m.ephemeral}` : m.message_id}/${r}/${c}`;
  const busy = state.pressing.has(id);
  const off = b.disabled !== undefined;
  const style = ['primary', 'success', 'danger'].includes(b.style) ? b.style : '';
  if (b.url) {
    let url = null;
    try { url = new URL(b.url); } catch { /* shown as a button that cannot be pressed */ }
    if (url && ['http:', 'https:', 'tg:'].includes(url.protocol)) {
      return h('a', { class: `key ${style}`, href: url.href, target: '_blank', rel: 'noopener noreferrer' }, `${b.text} ↗`);
    }
  }
  return h('button', {
    type: 'button', class: `key ${style} ${busy ? 'busy' : ''}`, disabled: off, 'aria-busy': busy ? 'true' : null,
    onclick: () => {
      if (b.copy_text) copy(b.copy_text.text);
      else if (b.callback_data) press(view, m, b, r, c, id);
      else alertBox('This kind of button needs the real Telegram.');
    },
  }, b.text);
}

async function press(view, m, b, row, column, id) {
  state.pressing.set(id, '');
  refresh();
  // A client stops its spinner when the bot says nothing for long.
  setTimeout(() => { if (state.pressing.delete(id)) refresh(); }, 15000);
  const out = await attempt(post('press', { me: view.me, chat: view.chat, message: m.message_id, alone: m.ephemeral || 0, row, column, label: b.text }));
  if (out && state.pressing.has(id)) state.pressing.set(id, out.press);
  else state.pressing.delete(id);
  refresh();
  if (!$('alert').open) home();
}

function draft(view) {
  const d = view.draft;
  return h('li', { class: 'message bot-made draft' }, h('div', { class: 'stack' },
    h('div', { class: 'bubble' }, d.text ? h('div', { class: 'text' }, render(d.text, d.entities)) : h('div', { class: 'text thinking' }, 'Thinking …'), h('span', { class: 'caret', 'aria-hidden': 'true' })),
    d.can_stop ? h('div', { class: 'keyboard' }, h('div', { class: 'keys' },
      h('button', { type: 'button', class: 'key', onclick: () => attempt(post('stop', { me: view.me, chat: view.chat, draft: d.id })) }, 'Stop'))) : null));
}

function empty(view, row) {
  const none = view.messages.length === 0 && !view.draft;
  $('empty').hidden = !none;
  if (!none) return;
  const prefix = view.chat < 0 ? `@${view.bot_user} ` : '';
  const stranger = !view.people.find((p) => p.id === view.me).listed;
  $('empty').replaceChildren(
    h('span', { class: 'avatar big zeph', 'aria-hidden': 'true' }, 'Z'),
    h('h3', {}, view.chat < 0 && row ? [row.group, row.title].filter(Boolean).join(' › ') : `Chat with ${view.bot_name}`),
    h('p', {}, view.chat === -1002 ? 'This group is on no list: mention the bot, and Ann is asked whether to admit it.' : stranger ? 'Dora is on no list: write, and Ann is asked whether to admit her.' : view.chat < 0 ? 'In the group the bot listens when it is mentioned or answered. Ask:' : 'Ask:'),
    h('ul', { class: 'tries' }, TRY.map((t, i) => h('li', {}, h('button', { type: 'button', onclick: () => suggest(prefix + t) }, t), i === 1 ? h('small', {}, 'asks you first') : null))),
    h('p', { class: 'quiet' }, 'Then switch person, restart the bot or kill it in the middle: nothing gets lost.'));
}

// announce reads new messages out to screen readers.
function announce(view, moved) {
  const heard = new Set(view.messages.filter((m) => m.ephemeral).map((m) => m.ephemeral));
  if (!moved) {
    for (const list of albums(view.messages)) {
      const m = list.find((o) => o.text) || list[0];
      const fresh = m.ephemeral ? !aside.has(m.ephemeral) : list[list.length - 1].message_id > newest;
      if (fresh && m.from !== view.me && !m.service) $('live').append(h('p', {}, `${m.name}${m.ephemeral ? ', only for you' : ''}: ${told(list, m)}`));
    }
    while ($('live').childElementCount > 5) $('live').firstElementChild.remove();
  } else {
    $('live').replaceChildren();
  }
  newest = Math.max(0, ...view.messages.map((m) => m.message_id));
  aside = heard;
}

function markRead() {
  const { view } = state;
  if (!view || document.hidden || !shown()) return;
  const row = view.chats.find((c) => c.chat === view.chat && c.thread === view.thread);
  const last = Math.max(0, ...view.messages.map((m) => m.message_id));
  if (!row || row.unread === 0 || last === 0) return;
  row.unread = 0;
  attempt(post('read', { me: view.me, chat: view.chat, thread: view.thread, message: last }));
}

// shown: on a narrow screen the conversation may be behind the list.
const shown = () => $('scroll').offsetParent !== null;
