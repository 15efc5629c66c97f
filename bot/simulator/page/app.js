// The page of the simulator: state, and the loop that keeps it fresh.
import { get } from './api.js';
import { $, alertBox, toast } from './dom.js';
import { bar, showBar } from './bar.js';
import { chats, showChats } from './list.js';
import { menu } from './menu.js';
import { messages, showMessages } from './messages.js';
import { composer, showComposer } from './composer.js';
import { inspector, showInspector } from './inspector.js';
import { viewer } from './media.js';
import { search, showSearch } from './search.js';
import { theme } from './theme.js';

export const state = {
  me: 1001, chat: 1001, thread: 0, limit: 200,
  view: null,      // the last View of the server
  selected: 0,     // message in the inspector
  reply: 0,        // message being answered
  quote: '',       // the part of it that is quoted
  editing: 0,      // own message being edited
  unseen: 0,       // message above which "new messages" stands
  pressing: new Map(), // "chat/message/row/column" -> press id, "" until known
  answered: new Map(), // person -> number of the last answer seen
};

let wanted = false;
let running = false;
let abort = null;
let timer = 0;

// refresh asks for the view; many wishes while one is under way become one.
export async function refresh() {
  wanted = true;
  if (running) return;
  running = true;
  while (wanted) {
    wanted = false;
    await once();
  }
  running = false;
}

async function once() {
  abort = new AbortController();
  const place = { me: state.me, chat: state.chat, thread: state.thread, limit: state.limit };
  try {
    const view = await get('view', place, abort.signal);
    if (view.me !== state.me || view.chat !== state.chat || view.thread !== state.thread) return;
    const before = state.view;
    state.view = view;
    connected(true);
    show(view, before);
  } catch (err) {
    if (err.name === 'AbortError') return;
    if (err instanceof TypeError) connected(false);
    else toast(err.message, true);
  }
}

function show(view, before) {
  const moved = !before || before.me !== view.me || before.chat !== view.chat || before.thread !== view.thread;
  if (moved) state.unseen = (view.messages.find((m) => m.unseen) || { message_id: 0 }).message_id;
  answers(view);
  showBar(view);
  showChats(view);
  showMessages(view, moved);
  showSearch(view);
  showComposer(view);
  showInspector(view);
  document.body.dataset.ready = `${view.me}/${view.chat}/${view.thread}`;
  clearTimeout(timer);
  if (view.until) timer = setTimeout(refresh, Math.max(new Date(view.until) - new Date(view.now), 0) + 100);
}

// answers shows what the bot said to presses since the last look.
function answers(view) {
  const known = state.answered.get(view.me);
  const last = Math.max(0, ...view.answers.map((a) => a.seq));
  for (const a of view.answers) {
    for (const [key, id] of state.pressing) if (id === a.id) state.pressing.delete(key);
    if (known === undefined || a.seq <= known || !a.text) continue;
    if (a.alert) alertBox(a.text);
    else toast(a.text);
  }
  state.answered.set(view.me, last);
}

function connected(yes) {
  $('banner').hidden = yes;
  if (!yes) $('banner').textContent = 'The simulator does not answer. Start it again with “zephbot simulate” and open the address it prints.';
}

// go opens a conversation, as a person.
export function go(me, chat, thread = 0, pane = 'chat') {
  const moved = me !== state.me || chat !== state.chat || thread !== state.thread;
  if (me !== state.me) $('toasts').replaceChildren();
  Object.assign(state, { me, chat, thread });
  if (moved) Object.assign(state, { selected: 0, reply: 0, quote: '', editing: 0, limit: 200 });
  document.body.dataset.pane = pane;
  history.replaceState(null, '', `#${me}/${chat}/${thread}`);
  if (abort) abort.abort();
  refresh();
}

function place() {
  const [me, chat, thread] = location.hash.slice(1).split('/').map(Number);
  if ([1001, 1002, 1003, 1004].includes(me) && (chat === me || (chat === -1001 && me !== 1004) || (chat === -1002 && [1001, 1004].includes(me)))) go(me, chat, thread || 0);
  else go(1001, 1001, 0, 'list');
}

function start() {
  theme();
  bar();
  chats();
  messages();
  menu();
  search();
  composer();
  inspector();
  viewer();
  $('alert-ok').addEventListener('click', () => $('alert').close());
  // Chromium gives the focus back without a caret: keys would fall into nothing.
  $('alert').addEventListener('close', () => { $('text').blur(); $('text').focus(); });
  place();
  const events = new EventSource('/api/events');
  events.addEventListener('change', refresh);
  events.addEventListener('error', () => connected(false));
  document.addEventListener('visibilitychange', refresh);
}

start();
