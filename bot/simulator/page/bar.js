// The bar on top: who am I, the bot process, faults.
import { get, post } from './api.js';
import { $, exact, h, reconcile, toast } from './dom.js';
import { go, state } from './app.js';

const FAULTS = [
  ['429', 'Too many requests', 'The next sends and edits are refused with “retry after 3”.'],
  ['cut', 'Cut after execution', 'The next message is sent, but the bot never hears of it.'],
  ['duplicate', 'Doubled update', 'The next thing somebody does reaches the bot twice.'],
  ['slow', 'Slow', 'The next sends and edits take three seconds.'],
];

let ticker = 0;

export function bar() {
  for (const b of document.querySelectorAll('[data-do]')) {
    b.addEventListener('click', () => {
      attempt(post('bot', { do: b.dataset.do }));
      menu($('pill'), $('controls'), false);
      home();
    });
  }
  $('pill').addEventListener('click', () => menu($('pill'), $('controls'), $('controls').hidden));
  $('output').addEventListener('click', log);
  $('faults').append(...FAULTS.map(faultRow), h('div', { class: 'fault-end' },
    h('button', { type: 'button', id: 'calm', onclick: () => attempt(post('calm')) }, 'Clear all')));
  $('faults-button').addEventListener('click', () => menu($('faults-button'), $('faults'), $('faults').hidden));
  document.addEventListener('click', (e) => {
    if (!e.target.closest('.menu')) menu($('faults-button'), $('faults'), false);
    if (!e.target.closest('.bot')) menu($('pill'), $('controls'), false);
  });
  document.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return;
    for (const [button, panel] of [[$('faults-button'), $('faults')], [$('pill'), $('controls')]]) {
      if (button.getAttribute('aria-expanded') !== 'true') continue;
      menu(button, panel, false);
      button.focus();
      e.stopPropagation();
    }
  });
  $('people').addEventListener('keydown', arrows);
}

function menu(button, panel, open) {
  button.setAttribute('aria-expanded', String(open));
  panel.hidden = !open;
  if (!open && panel.id === 'controls') $('log').hidden = true;
}

// home gives the focus back to the text field, where a hand on the keyboard is.
export function home() {
  if (!matchMedia('(pointer: coarse)').matches) $('text').focus({ preventScroll: true });
}

async function log() {
  try {
    const out = await get('log');
    $('log').hidden = false;
    $('log').textContent = out.lines.join('\n') || 'It has printed nothing.';
    $('log').scrollTop = $('log').scrollHeight;
  } catch (err) {
    toast(err.message, true);
  }
}

function faultRow([kind, title, text]) {
  const arm = (count) => h('button', {
    type: 'button', 'data-fault': kind, 'aria-label': `${title}: ${count} more`, onclick: () => attempt(post('fault', { kind, count })),
  }, `+${count}`);
  return h('div', { class: 'fault' },
    h('div', { class: 'fault-text' }, h('strong', {}, title, h('span', { class: 'badge', 'data-count': kind, hidden: true })), h('p', {}, text)),
    arm(1), arm(5));
}

async function attempt(promise) {
  try {
    await promise;
  } catch (err) {
    toast(err.message, true);
  }
}

// Arrow keys move between people, as in every group of radio buttons.
function arrows(e) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  const all = [...$('people').children];
  const next = all[(all.findIndex((el) => el.getAttribute('aria-checked') === 'true') + step + all.length) % all.length];
  next.click();
  next.focus();
}

export function showBar(view) {
  reconcile($('people'), view.people.map((p) => ({
    key: String(p.id), version: p.id === view.me ? 'me' : String(p.unread), make: () => person(p, p.id === view.me),
  })));
  process(view);
  const unread = view.people.reduce((n, p) => n + (p.id === view.me ? p.unread : 0), 0);
  document.title = unread ? `(${unread}) Zeph simulator` : 'Zeph simulator';
  const total = Object.values(view.faults).reduce((a, b) => a + b, 0);
  badge($('faults-badge'), total);
  for (const el of document.querySelectorAll('[data-count]')) badge(el, view.faults[el.dataset.count] || 0);
  $('calm').disabled = total === 0;
}

function badge(el, n) {
  el.hidden = n === 0;
  el.textContent = String(n);
}

function person(p, mine) {
  const role = p.admin ? 'admin' : p.listed ? `reads ${new Intl.DisplayNames(['en'], { type: 'language' }).of(p.language)}` : 'stranger';
  return h('button', {
    type: 'button', class: 'person', role: 'radio', 'aria-checked': String(mine), tabindex: mine ? '0' : '-1', 'data-person': p.id,
    'aria-label': `${p.name}, ${role}${p.unread && !mine ? `, ${p.unread} unread` : ''}`, title: `Be ${p.name} (${role})`,
    onclick: () => { // who is in the same group sees it too
      const there = p.groups.includes(state.chat);
      if (p.id !== state.me) go(p.id, there ? state.chat : p.id, there ? state.thread : 0, document.body.dataset.pane);
    },
  },
  h('span', { class: `avatar small p${p.id}`, 'aria-hidden': 'true' }, p.name[0]),
  h('span', { class: 'person-name' }, p.name, h('small', {}, role)),
  p.unread > 0 && !mine ? h('span', { class: 'badge', 'aria-hidden': 'true' }, String(p.unread)) : null);
}

function process(view) {
  const { bot } = view;
  const down = bot.state === 'stopped';
  const offset = new Date(view.now) - Date.now();
  const words = () => {
    const left = bot.next ? Math.ceil((new Date(bot.next) - Date.now() - offset) / 1000) : 0;
    switch (bot.state) {
      case 'running': return 'running';
      case 'starting': return 'starting …';
      case 'restarting': return 'restarting …';
      case 'stopping': return 'stopping …';
      case 'dead': return left > 0 ? `dead · back in ${left} s` : 'dead · coming back';
      default: return 'stopped';
    }
  };
  const update = () => { $('pill-text').textContent = words(); };
  update();
  clearInterval(ticker);
  if (bot.state === 'dead') ticker = setInterval(update, 500);
  $('pill').dataset.state = bot.state;
  $('pill').dataset.pid = bot.pid || '';
  const fact = (name, value) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []);
  $('process').replaceChildren(...[fact('State', bot.state), fact('Process id', bot.pid ? String(bot.pid) : ''), fact('Since', exact(bot.since)), fact('Starts', String(bot.starts)),
    fact('Last end', bot.exit), fact('Last words', bot.last_line), fact('Updates that wait', String(view.pending))].flat());
  const stop = document.querySelector('[data-do=stop], [data-do=start]');
  stop.dataset.do = down || bot.state === 'dead' ? 'start' : 'stop';
  stop.textContent = stop.dataset.do === 'start' ? 'Start' : 'Stop';
  document.querySelector('[data-do=kill]').disabled = !bot.pid;
  document.querySelector('[data-do=restart]').disabled = !bot.pid;
}
