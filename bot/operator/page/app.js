// The operator's page: sign-in, navigation, and the loop that keeps the open panel fresh while somebody looks.
import { SignedOut, get, post } from './api.js';
import { $, h, toast } from './dom.js';
import { theme } from './theme.js';
import { badges, panels } from './panels.js';
import { closeInspector, inspector } from './inspector.js';

const EVERY = 5000; // ms between two looks

export const state = { me: null, panel: '', query: {} };

let timer = 0;
let asked = 0;
let shown = ''; // what the open panel shows

// signedOut shows how to sign in, and forgets what was shown. What is still under way is no longer wanted: its answer
// would open the page again, or replace the text.
function signedOut(text) {
  clearTimeout(timer);
  asked++;
  Object.assign(state, { me: null, panel: '', query: {} });
  shown = '';
  closeInspector();
  $('content').replaceChildren();
  $('panes').hidden = true;
  $('welcome').hidden = false;
  $('welcome-text').textContent = text;
  for (const id of ['who', 'process', 'signout']) $(id).hidden = true;
  document.body.dataset.ready = 'signed out';
}

function signedIn(me) {
  state.me = me;
  $('welcome').hidden = true;
  $('panes').hidden = false;
  for (const id of ['who', 'process', 'signout']) $(id).hidden = false;
  $('who').textContent = me.name || me.caller;
  $('who').title = me.caller;
  $('title').textContent = `${me.bot || 'Zeph'} operator`;
  const others = me.processes.length - 1;
  $('process').textContent = `${me.version} · process ${me.process.slice(0, 8)}${others > 0 ? ` and ${others} more` : ''}`;
  $('process').title = `This page is served by ${me.process}${others > 0 ? `; these work on the same database: ${me.processes.slice(1).join(', ')}` : ''}`;
  $('banner').hidden = !me.problem;
  $('banner').textContent = me.problem || '';
}

// refresh asks for the counts and the open panel. Nothing is asked while nobody looks.
export async function refresh() {
  clearTimeout(timer);
  if (document.hidden || $('welcome').hidden === false && !state.panel) return;
  const number = ++asked;
  try {
    const panel = panels[state.panel];
    // One after the other: the first request of somebody who is no admin any more ends the session and says why. Another
    // one beside it would only say that nobody is signed in.
    const me = await get('me');
    if (number !== asked) return;
    const data = await get(panel.path, { ...panel.query, ...state.query });
    if (number !== asked) return;
    signedIn(me);
    nav();
    show(panel, data);
  } catch (err) {
    if (number !== asked) return;
    if (err instanceof SignedOut) return void signedOut(err.message);
    $('banner').hidden = false;
    $('banner').textContent = err instanceof TypeError ? 'The service does not answer. It is asked again every few seconds.' : err.message;
  }
  if (number === asked) timer = setTimeout(refresh, panels[state.panel].every || EVERY);
}

function show(panel, data) {
  const version = state.panel + JSON.stringify(data);
  if (version !== shown) {
    shown = version;
    $('panel-note').textContent = panel.note ? panel.note(data) : '';
    const focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.focus : '';
    $('content').replaceChildren(...panel.show(data).flat().filter(Boolean));
    if (focus && document.activeElement === document.body) ($('content').querySelector(`[data-focus="${CSS.escape(focus)}"]`) || $('panel')).focus({ preventScroll: true });
  }
  document.body.dataset.ready = state.panel;
}

function nav() {
  const counts = badges(state.me);
  for (const a of $('nav').querySelectorAll('a')) {
    const n = counts[a.dataset.panel] || 0;
    const badge = a.querySelector('.badge');
    badge.hidden = n === 0;
    badge.textContent = String(n);
    a.classList.toggle('alarm', a.dataset.panel === 'letters' && n > 0);
  }
}

// open shows a panel; query narrows it.
export function open(name, query = {}) {
  if (!panels[name]) name = 'sessions';
  const moved = name !== state.panel;
  Object.assign(state, { panel: name, query });
  for (const a of $('nav').querySelectorAll('a')) a.setAttribute('aria-current', a.dataset.panel === name ? 'page' : 'false');
  if (moved) {
    delete document.body.dataset.ready;
    shown = '';
    closeInspector();
    $('nav').querySelector('[aria-current=page]').scrollIntoView({ block: 'nearest', inline: 'center' });
    $('panel-title').textContent = panels[name].title;
    $('panel-note').textContent = '';
    $('content').replaceChildren(h('p', { class: 'quiet' }, 'Reading …'));
    filters(panels[name]);
    document.title = `${panels[name].title} · Zeph operator`;
    if (location.hash !== `#/${name}`) history.pushState(null, '', `#/${name}`);
  }
  refresh();
}

function filters(panel) {
  const fields = panel.filters || [];
  $('filters').hidden = fields.length === 0;
  $('filters').replaceChildren(...fields.map(field), fields.some((f) => !f.options) ? h('button', { type: 'submit' }, 'Search') : '');
}

function field(f) {
  if (f.options) {
    return h('label', {}, f.label, h('select', { name: f.name, onchange: submit }, f.options.map(([value, text]) => h('option', { value }, text))));
  }
  return h('label', {}, f.label, h('input', { name: f.name, type: f.type || 'search', placeholder: f.placeholder || '', autocomplete: 'off' }));
}

function submit(e) {
  if (e.type === 'submit') e.preventDefault();
  const query = Object.fromEntries(new FormData($('filters')));
  for (const name of ['since', 'until']) if (query[name]) query[name] = new Date(query[name]).toISOString();
  open(state.panel, query);
}

async function signIn(code) {
  history.replaceState(null, '', location.pathname);
  try {
    await post('signin', { code });
  } catch (err) {
    return void signedOut(err.message);
  }
  open('sessions');
}

async function start() {
  theme();
  inspector();
  $('nav').append(...Object.entries(panels).map(([name, panel]) => h('li', {},
    h('a', { href: `#/${name}`, 'data-panel': name }, h('span', { class: 'sign', 'aria-hidden': 'true' }, panel.sign), h('span', {}, panel.title), h('span', { class: 'badge', hidden: true })))));
  $('filters').addEventListener('submit', submit);
  $('signout').addEventListener('click', async () => {
    try {
      await post('signout');
      signedOut('You are signed out.');
    } catch (err) {
      if (err instanceof SignedOut) signedOut(err.message);
      else toast(err.message, true);
    }
  });
  addEventListener('hashchange', () => (/^#[A-Z0-9]{20,}$/.test(location.hash) ? signIn(location.hash.slice(1)) : open(location.hash.replace(/^#\/?/, ''))));
  document.addEventListener('visibilitychange', refresh);
  let settled = 0; // charts are drawn as wide as the page is
  window.addEventListener('resize', () => {
    clearTimeout(settled);
    settled = setTimeout(() => state.panel === 'costs' && refresh(), 200);
  });
  const hash = location.hash.slice(1);
  if (/^[A-Z0-9]{20,}$/.test(hash)) return void signIn(hash);
  try {
    signedIn(await get('me'));
    open(hash.replace(/^\//, ''));
  } catch (err) {
    signedOut(err instanceof SignedOut ? 'You are not signed in.' : err.message);
  }
}

start();
