// The panel on the right: what happened in a session. Texts are shown only when somebody asks for them, which is put on record.
import { get, post } from './api.js';
import { $, h, hide, toast } from './dom.js';
import { turn } from './story.js';
import { named, when } from './table.js';

let key = '';

export function inspector() {
  $('inspector-close').addEventListener('click', closeInspector);
  document.addEventListener('keydown', (e) => {
    if (e.key === 'Escape' && key && !$('ask').open) closeInspector();
  });
}

export function closeInspector() {
  const from = key;
  key = '';
  document.body.classList.remove('inspecting');
  hide($('inspector'), true, () => $('content').querySelector(`[data-session="${CSS.escape(from)}"]`) || $('panel'));
  $('story').replaceChildren();
}

// inspect opens a session.
export async function inspect(session) {
  key = session;
  document.body.classList.add('inspecting');
  $('inspector').hidden = false;
  $('story').replaceChildren(h('p', { class: 'quiet' }, 'Reading …'));
  try {
    const out = await get('session', { key: session });
    if (key === session) paint(out);
  } catch (err) {
    if (key === session) $('story').replaceChildren(h('p', { class: 'quiet' }, err.message));
  }
  $('inspector-close').focus({ preventScroll: true });
}

async function texts(session) {
  try {
    const out = await post('texts', { session });
    if (key === session) paint(out);
    toast('Texts are shown. That you read them is in the audit log.');
  } catch (err) {
    toast(err.message, true);
  }
}

function paint(out) {
  const s = out.session;
  const fact = (name, value) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []);
  $('story').replaceChildren(
    h('dl', {}, fact('Session', s.key), fact('Person', named(s.name, s.person)), fact('State', s.state), fact('Since', s.since ? when(s.since) : ''),
      fact('Process', s.owner), fact('Waiting', out.waiting ? String(out.waiting) : '')),
    out.texts ? h('p', { class: 'quiet' }, 'With texts: your request is in the audit log.') : h('div', { class: 'reveal' },
      h('p', { class: 'quiet' }, 'What people wrote is hidden.'),
      h('button', { type: 'button', id: 'texts', onclick: () => texts(s.key) }, 'Show texts')),
    ...(out.turns || []).flatMap((t) => h('section', { class: 'turn-of' }, turn(t, ''))),
    (out.turns || []).length ? '' : h('p', { class: 'quiet' }, 'Nothing has happened here, or it was forgotten.'));
  document.body.dataset.inspected = s.key;
}
