// What a turn did: its steps with the calls, the rule that decided, who approved, tokens, cost and time.
import { exact, h } from './dom.js';

const SIGNS = { model: '✦', tool: '⚙', approval: '✋', answer: '✓', end: '■' };
const WORDS = { model: 'Model', tool: 'Tool', approval: 'Decision', answer: 'Answer', end: 'End' };
const open = new Set(); // details that are open, by their key

// turn shows a turn; who asked is its name, "" = nobody is named.
export function turn(t, who) {
  const steps = t.steps || [];
  const sum = (field) => steps.reduce((n, s) => n + (s[field] || 0), 0);
  const total = [steps.length === 1 ? '1 step' : `${steps.length} steps`, ...taken(sum('millis'), sum('tokens'), sum('usd'))];
  return [
    h('div', { class: 'turn' },
      h('p', { class: 'turn-text' }, who ? `${who}: ` : '', t.text),
      h('p', { class: 'turn-meta' }, h('span', { class: 'tag' }, t.state), h('span', {}, exact(t.began)), h('span', { title: t.id }, total.filter(Boolean).join(' · ')))),
    h('ol', { class: 'steps' }, steps.map((s, i) => step(s, `${t.id} ${i}`))),
  ];
}

export const money = (usd) => (usd >= 0.1 ? usd.toFixed(2) : usd.toPrecision(2));

// span says how long something took, as the bot does: roughly, and never in thousandths of a second.
export function span(ms) {
  if (ms < 9950) return ms < 100 ? 'under 0.1 s' : `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120e3) return `${Math.round(ms / 1000)} s`;
  return ms < 7200e3 ? `${Math.floor(ms / 60e3)} min` : `${Math.floor(ms / 3600e3)} h`;
}

const taken = (millis, tokens, usd) => [millis ? span(millis) : '', tokens ? `${tokens.toLocaleString('en')} ${tokens === 1 ? 'token' : 'tokens'}` : '', usd ? `$${money(usd)}` : ''];

function step(s, key) {
  const facts = taken(s.millis, s.tokens, s.usd).filter(Boolean).join(' · ');
  return h('li', { class: `step ${s.kind} ${s.failed ? 'failed' : ''}` },
    h('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[s.kind] || '·'),
    h('div', { class: 'step-body' },
      h('p', { class: 'step-head' }, h('strong', {}, [WORDS[s.kind] || '', s.name].filter(Boolean).join(': ')), h('small', {}, facts)),
      s.text ? long(s.text, key) : null,
      s.rule ? h('p', { class: 'fact' }, h('span', {}, 'Rule'), s.rule) : null,
      s.by ? h('p', { class: 'fact' }, h('span', {}, 'Decided by'), s.by) : null));
}

// long folds what has many lines.
function long(text, key) {
  if (text.length < 160 && text.split('\n').length <= 3) return h('p', { class: 'step-text' }, text);
  return details(key, h('summary', { class: 'step-text' }, `${text.slice(0, 120).split('\n').slice(0, 2).join('\n')} …`), h('pre', { tabindex: '0' }, text));
}

export function details(key, ...children) {
  const el = h('details', { open: open.has(key) }, ...children);
  el.addEventListener('toggle', () => { if (el.open) open.add(key); else open.delete(key); });
  return el;
}
