// Text with entities, as Telegram shows it. Offsets and lengths are UTF-16 units, which is what JavaScript counts in.
import { copy, h, hide } from './dom.js';
import { highlight } from './highlight.js';

const BLOCKS = new Set(['pre', 'blockquote', 'expandable_blockquote']);

// render returns the nodes of a text with its entities. act is called with a command that was clicked; without it, commands are text.
export function render(text, entities = [], act = null) {
  const list = entities.map((e) => ({ ...e, start: e.offset, end: Math.min(e.offset + e.length, text.length) }))
    .filter((e) => e.start >= 0 && e.end > e.start);
  return span(text, 0, text.length, ordered(list), act);
}

// The longer entity is the outer one; a block is outside of what has its size.
function ordered(list) {
  return list.sort((a, b) => a.start - b.start || b.end - a.end || BLOCKS.has(b.type) - BLOCKS.has(a.type));
}

function span(text, from, to, list, act) {
  const out = [];
  let at = from;
  let rest = list;
  while (rest.length > 0) {
    const [e, ...others] = rest;
    const start = Math.max(e.start, at);
    const end = Math.min(e.end, to);
    if (end <= start) {
      rest = others;
      continue;
    }
    plain(out, text.slice(at, start), BLOCKS.has(e.type), act);
    const inner = others.filter((o) => o.start < end).map((o) => ({ ...o, end: Math.min(o.end, end) }));
    const beyond = others.filter((o) => o.start < end && o.end > end).map((o) => ({ ...o, start: end }));
    out.push(wrap(e, text.slice(start, end), () => span(text, start, end, inner, act), act));
    rest = ordered([...beyond, ...others.filter((o) => o.start >= end)]);
    at = end;
  }
  plain(out, text.slice(at, to), false, act);
  return out;
}

// A command in a text: clients find these in messages of bots themselves.
const COMMAND = /(?<=^|[\s(])\/[a-zA-Z][a-zA-Z0-9_]{0,31}(?:@[a-zA-Z][a-zA-Z0-9_]{3,31})?(?![\w/.-])/g;

// What only shows something when it is sent without an argument.
const HARMLESS = new Set(['help', 'mcp', 'memory', 'model', 'people', 'policy', 'quota', 'schedule', 'settings', 'skills', 'start', 'status', 'timezone', 'tools', 'why']);

// shows reports whether a command only shows something, so that a click may send it.
export const shows = (text) => HARMLESS.has(text.slice(1).split('@')[0].toLowerCase());

// The names of questions, which follow the commands that decide about them.
const QUESTION = /^ [a-z]{5,22}(?![\w-])/;
const argumentOf = (name, rest) => (/^\/(approve|deny)(?:@|$)/.test(name) && (rest.match(QUESTION) || [''])[0]) || '';

// commandsIn lists the commands of a text, each once, with the arguments of those that decide.
export const commandsIn = (text) => [...new Map([...text.matchAll(COMMAND)].map(({ 0: name, index }) => [name, argumentOf(name, text.slice(index + name.length))]))];

// tapWords says what a click on a command does.
export const tapWords = (text, argument = '') => `${shows(text) ? 'Send' : 'Write'} ${text}${argument}`;

// No stop of Tab: the menu of the message does it too.
const command = (text, act, argument = '') => h('button', { type: 'button', class: 'inline', tabindex: '-1', title: tapWords(text, argument), onclick: (ev) => { ev.stopPropagation(); act(text, argument); } }, text);

// plain adds text. The line break next to a block is the block's own.
function plain(out, text, beforeBlock, act) {
  const last = out[out.length - 1];
  let s = text;
  if (last instanceof Element && last.dataset.block !== undefined && s.startsWith('\n')) s = s.slice(1);
  if (beforeBlock && s.endsWith('\n')) s = s.slice(0, -1);
  let at = 0;
  for (const { 0: name, index } of act ? s.matchAll(COMMAND) : []) {
    if (index > at) out.push(document.createTextNode(s.slice(at, index)));
    out.push(command(name, act, argumentOf(name, s.slice(index + name.length))));
    at = index + name.length;
  }
  if (at < s.length) out.push(document.createTextNode(s.slice(at)));
}

const TAGS = { bold: 'strong', italic: 'em', underline: 'u', strikethrough: 's' };

function wrap(e, text, children, act) {
  switch (e.type) {
    case 'bold': case 'italic': case 'underline': case 'strikethrough':
      return h(TAGS[e.type], {}, children());
    case 'code':
      return h('code', { title: 'Click to copy', onclick: (ev) => { ev.stopPropagation(); copy(text); } }, text);
    case 'pre':
      return pre(e, text);
    case 'spoiler':
      return spoiler(children());
    case 'blockquote':
      return h('blockquote', { 'data-block': '' }, children());
    case 'expandable_blockquote':
      return expandable(children());
    case 'text_link':
      return link(e.url, children());
    case 'url':
      return link(/^[a-z][a-z0-9+.-]*:/i.test(text) ? text : `http://${text}`, children());
    case 'email':
      return link(`mailto:${text}`, children());
    case 'bot_command':
      return act ? command(text, act) : h('span', {}, text);
    case 'mention': case 'text_mention': case 'hashtag': case 'cashtag': case 'phone_number':
      return h('span', { class: 'mention' }, children());
    case 'date_time':
      return h('time', { datetime: new Date(e.unix_time * 1000).toISOString(), title: text }, new Date(e.unix_time * 1000).toLocaleString());
    default:
      return h('span', {}, children());
  }
}

// link makes a link of what is surely one, and leaves the rest as text.
function link(url, children) {
  let target = null;
  try {
    target = new URL(url);
  } catch {
    return h('span', {}, children);
  }
  if (!['http:', 'https:', 'mailto:', 'tg:'].includes(target.protocol)) return h('span', { title: url }, children);
  return h('a', { href: target.href, target: '_blank', rel: 'noopener noreferrer', title: target.href }, children);
}

function pre(e, text) {
  const body = text.endsWith('\n') ? text.slice(0, -1) : text;
  return h('figure', { class: 'pre', 'data-block': '' },
    h('figcaption', {}, h('span', {}, e.language || ''),
      h('button', { type: 'button', tabindex: '-1', onclick: (ev) => { ev.stopPropagation(); copy(body); } }, 'Copy')),
    h('pre', {}, h('code', {}, highlight(body, e.language))));
}

function spoiler(children) {
  const el = h('span', { class: 'spoiler', role: 'button', tabindex: '0', 'aria-label': 'Hidden text, press to show' }, h('span', {}, children));
  const show = (ev) => {
    if (ev.type === 'keydown' && ev.key !== 'Enter' && ev.key !== ' ') return;
    ev.preventDefault();
    ev.stopPropagation();
    el.classList.add('shown');
    el.removeAttribute('aria-label');
  };
  el.addEventListener('click', show);
  el.addEventListener('keydown', show);
  return el;
}

function expandable(children) {
  const more = h('button', { type: 'button', class: 'more', 'aria-expanded': 'false' }, 'Show more');
  const el = h('blockquote', { class: 'expandable', 'data-block': '' }, h('div', {}, children), more);
  // What fits has nothing more to show. That is known once it is on the page.
  requestAnimationFrame(() => { hide(more, !el.classList.contains('open') && el.isConnected && el.firstChild.scrollHeight <= el.firstChild.clientHeight + 2, () => el.closest('li.message')); });
  more.addEventListener('click', (ev) => {
    ev.stopPropagation();
    const open = el.classList.toggle('open');
    more.textContent = open ? 'Show less' : 'Show more';
    more.setAttribute('aria-expanded', String(open));
  });
  return el;
}
