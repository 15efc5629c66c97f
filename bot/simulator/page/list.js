// The list of chats of the person on the left.
import { post } from './api.js';
import { $, h, reconcile, time, toast } from './dom.js';
import { go, state } from './app.js';

let group = 0; // the one that gets a new topic

export function chats() {
  $('chats').addEventListener('keydown', (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    const all = [...$('chats').querySelectorAll('button.chat-row')];
    const at = all.indexOf(document.activeElement);
    all[Math.min(Math.max(at + step, 0), all.length - 1)].focus();
  });
  $('topic-form').addEventListener('submit', (e) => { e.preventDefault(); topic(); });
  $('topic-cancel').addEventListener('click', () => $('topic').close());
  $('back').addEventListener('click', () => {
    document.body.dataset.pane = 'list';
    ($('chats').querySelector('[aria-current=true]') || document.body).focus();
  });
}

async function topic() {
  const name = $('topic-name').value;
  try {
    const made = await post('topic', { me: state.me, chat: group, name });
    $('topic').close();
    go(state.me, group, made.thread);
  } catch (err) {
    toast(err.message, true);
  }
}

function ask(chat) {
  group = chat;
  $('topic-name').value = '';
  $('topic').showModal();
}

export function showChats(view) {
  const me = view.people.find((p) => p.id === view.me);
  $('list-title').textContent = `${me.name}’s chats`;
  const items = [];
  let last = '';
  for (const row of view.chats) {
    if ((row.group || '') !== last) {
      last = row.group || '';
      const title = last;
      if (title) items.push({ key: `group ${title}`, version: row.subtitle, make: () => h('li', { class: 'group' }, h('span', { class: 'avatar small team', 'aria-hidden': 'true' }, title[0]), h('span', { class: 'group-name' }, title, h('small', {}, row.subtitle)),
        h('button', { type: 'button', class: 'icon', 'data-topic': row.chat, 'aria-label': `New topic in ${title}`, title: 'New topic', onclick: () => ask(row.chat) }, '+')) });
    }
    const open = row.chat === view.chat && row.thread === view.thread;
    items.push({ key: `${row.chat}/${row.thread}`, version: JSON.stringify([row, open]), make: () => line(view, row, open) });
  }
  reconcile($('chats'), items);
}

function line(view, row, open) {
  const mine = view.people.find((p) => p.id === view.me).name === row.last_name;
  const who = row.last_name && (row.chat < 0 || mine) ? `${mine ? 'You' : row.last_name}: ` : '';
  return h('li', {}, h('button', {
    type: 'button', class: row.group ? 'chat-row topic' : 'chat-row', 'aria-current': open ? 'true' : null, 'data-chat': `${row.chat}/${row.thread}`,
    onclick: () => go(state.me, row.chat, row.thread),
  },
  h('span', { class: row.group ? 'hash' : row.chat < 0 ? 'avatar garden' : 'avatar zeph', 'aria-hidden': 'true' }, row.group ? '#' : row.title[0]),
  h('span', { class: 'chat-row-text' },
    h('span', { class: 'chat-row-top' }, row.group ? h('span', { class: 'hidden' }, `${row.group}, `) : null, h('strong', {}, row.title), row.last_at ? h('time', {}, time(row.last_at)) : null),
    h('span', { class: 'chat-row-last' }, row.typing ? h('em', {}, 'typing …') : h('span', {}, who + (row.last_text || (row.chat < 0 ? 'no messages yet' : 'say hello'))),
      row.unread > 0 ? h('span', { class: 'badge' }, String(row.unread), h('span', { class: 'hidden' }, ' unread')) : null))));
}
