// Searching in the open conversation.
import { $ } from './dom.js';
import { home } from './bar.js';
import { refresh, state } from './app.js';

const ALL = 5000; // messages that are looked through: the server gives no more

let found = []; // ids of the messages that match, oldest first
let at = -1;
let place = '';
let asked = ''; // what found belongs to

export function search() {
  $('search-button').addEventListener('click', () => ($('search').hidden ? open() : close()));
  $('search-close').addEventListener('click', close);
  $('search-text').addEventListener('input', look);
  $('search').addEventListener('submit', (e) => e.preventDefault());
  $('search-older').addEventListener('click', () => step(-1));
  $('search-newer').addEventListener('click', () => step(1));
  $('search').addEventListener('keydown', (e) => {
    if (e.key === 'Escape') {
      e.stopPropagation();
      close();
    } else if (e.key === 'Enter' && e.target.id === 'search-text' && !e.isComposing) {
      e.preventDefault();
      step(e.shiftKey ? 1 : -1);
    }
  });
}

function open() {
  $('search').hidden = false;
  $('search-button').setAttribute('aria-expanded', 'true');
  $('search-text').value = '';
  $('search-text').focus();
  state.limit = Math.max(state.limit, ALL);
  asked = '';
  refresh();
}

function close() {
  if ($('search').hidden) return;
  $('search').hidden = true;
  $('search-button').setAttribute('aria-expanded', 'false');
  found = [];
  mark();
  home();
}

const words = () => $('search-text').value.trim().toLowerCase();

// look finds the messages with the words; of other words than before, the newest is shown first.
function look() {
  const wanted = words();
  if (!state.view) return;
  const before = found[at];
  found = wanted ? state.view.messages.filter((m) => !m.service && `${m.text} ${m.attachment ? m.attachment.name || '' : ''}`.toLowerCase().includes(wanted)).map((m) => m.message_id) : [];
  const same = wanted === asked && found.includes(before);
  asked = wanted;
  at = same ? found.indexOf(before) : found.length - 1;
  show(!same);
}

function step(by) {
  if (!found.length) return;
  at = (at + by + found.length) % found.length;
  show();
}

function show(go = true) {
  const count = $('search-count');
  if (!words()) count.textContent = '';
  else count.textContent = found.length ? `${found.length - at} of ${found.length}` : 'nothing found';
  for (const id of ['search-older', 'search-newer']) $(id).disabled = found.length < 2;
  mark();
  const row = found.length ? rowOf(found[at]) : null;
  if (row && go) row.scrollIntoView({ block: 'center' });
}

const rowOf = (id) => $('messages').querySelector(`[data-all~="${id}"]`);

// mark shows which message is meant, and the words in all that match.
function mark() {
  for (const el of $('messages').querySelectorAll('.found')) el.classList.remove('found');
  const row = found.length ? rowOf(found[at]) : null;
  if (row) row.classList.add('found');
  if (!CSS.highlights) return;
  CSS.highlights.set('search', new Highlight(...found.flatMap((id) => ranges(rowOf(id), words()))));
}

function ranges(row, wanted) {
  const text = row ? row.querySelector('.text') : null;
  const out = [];
  if (!text || !wanted) return out;
  const nodes = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const lower = node.data.toLowerCase();
    if (lower.length !== node.data.length) continue; // letters whose small form is longer
    for (let i = lower.indexOf(wanted); i >= 0; i = lower.indexOf(wanted, i + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, i);
      range.setEnd(node, i + wanted.length);
      out.push(range);
    }
  }
  return out;
}

// showSearch is called with every view: what was drawn again is marked again, another conversation ends the search.
export function showSearch(view) {
  const now = `${view.me}/${view.chat}/${view.thread}`;
  if (now !== place) {
    place = now;
    if (!$('search').hidden) {
      $('search').hidden = true;
      $('search-button').setAttribute('aria-expanded', 'false');
      found = [];
    }
  }
  if ($('search').hidden) return;
  look();
}
