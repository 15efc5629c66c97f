// The panel on the right: what happened behind an answer.
import { get } from './api.js';
import { $, exact, h, toast } from './dom.js';
import { home } from './bar.js';
import { refresh, state } from './app.js';
import { details, turn } from './story.js';

let shown = '';
let asked = 0;

export function inspector() {
  $('inspector-button').addEventListener('click', () => (state.selected ? close() : newest()));
  $('inspector-close').addEventListener('click', close);
  document.addEventListener('keydown', (e) => {
    if (e.key === 'Escape' && state.selected && !$('alert').open) close();
  });
}

function close() {
  choose(0);
  home();
}

// newest looks behind the newest answer: without one there is nothing to show, and the panel stays folded.
function newest() {
  const answer = state.view ? state.view.messages.filter((m) => m.from_bot && !m.service).pop() : null;
  if (answer) choose(answer.message_id);
  else toast('The bot has not answered here yet.');
}

function panel(yes) {
  document.body.classList.toggle('inspecting', yes);
  $('inspector-button').setAttribute('aria-expanded', String(yes));
}

function choose(id) {
  state.selected = id;
  panel(id !== 0);
  refresh();
}

// select shows what happened behind a message, or folds the panel when it does already.
export function select(id) {
  choose(state.selected === id ? 0 : id);
}

export async function showInspector(view) {
  const { selected } = state;
  const number = ++asked;
  panel(selected !== 0); // it folds with a change of the conversation too
  if (!selected) return;
  try {
    const out = await get('inspect', { me: view.me, chat: view.chat, message: selected });
    if (number === asked) paint(JSON.stringify(out), () => story(out, view));
  } catch (err) {
    if (number === asked) paint(err.message, () => [h('p', { class: 'quiet' }, err.message)]);
  }
}

function paint(version, make) {
  if (version === shown) return;
  shown = version;
  $('story').replaceChildren(...make().flat().filter(Boolean));
}

function story(out, view) {
  const person = view.people.find((p) => p.id === out.person);
  return [
    out.turn ? turn(named(out.turn, view.people), person ? person.name : '') : h('p', { class: 'quiet' }, out.problem || 'The bot remembers no work for this message.'),
    h('h3', {}, 'Calls to Telegram', h('small', {}, String(out.calls.length))),
    out.calls.length ? h('ol', { class: 'calls' }, out.calls.map(call)) : h('p', { class: 'quiet' }, 'None that the simulator still knows.'),
  ];
}

// named returns a turn whose deciders have their names instead of their ids.
function named(t, people) {
  const name = (by) => by.replace(/telegram:(\d+)/g, (all, id) => people.find((p) => String(p.id) === id)?.name || all);
  return { ...t, steps: (t.steps || []).map((s) => (s.by ? { ...s, by: name(s.by) } : s)) };
}

function call(c) {
  const bad = c.status !== 200;
  const status = c.status === 0 ? 'cut' : String(c.status);
  const params = Object.entries(c.params || {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return h('li', {}, details(`call ${c.n}`, h('summary', {},
    h('span', { class: 'method' }, c.method), h('span', { class: bad ? 'status bad' : 'status' }, status), h('time', {}, exact(c.at))),
  c.error ? h('p', { class: 'fact' }, h('span', {}, 'error'), c.error) : null,
  c.fault ? h('p', { class: 'fact' }, h('span', {}, 'fault'), `${c.fault}${c.executed ? ', executed all the same' : ', not executed'}`) : null,
  h('dl', {}, params.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))));
}
