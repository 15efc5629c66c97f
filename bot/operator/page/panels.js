// The panels: what each asks for and shows.
import { post } from './api.js';
import { $, h, locale, toast } from './dom.js';
import { columns, share } from './charts.js';
import { inspect } from './inspector.js';
import { span } from './story.js';
import { count, moment, named, number, pager, part, table, tag, usd } from './table.js';
import { open, refresh, state } from './app.js';

const RESULTS = [['', 'any'], ['success', 'success'], ['error', 'error'], ['blocked', 'blocked'], ['timeout', 'timeout'], ['cancelled', 'cancelled'], ['rollback', 'rolled back']];
const STATES = { idle: 'calm', running: 'good', parked: 'warn', waiting: 'warn', connected: 'good', connecting: 'warn', away: 'warn', broken: 'bad', stopped: 'calm', success: 'good', error: 'bad', blocked: 'warn', timeout: 'bad', unknown: 'warn', dead: 'bad', sending: 'good', pending: 'calm' };
const LANES = { idle: 'idle', running: 'running', parked: 'waits for a decision', waiting: 'waits for the model' };

const colour = (word, text = word) => tag(text, STATES[word] || '');

// session is a link to what happened in one.
const session = (key, text) => (key ? h('button', { type: 'button', class: 'link', 'data-session': key, 'data-focus': `session ${key}`, onclick: () => inspect(key) }, text || key) : '');

const person = (s) => named(s.name, s.person || s.caller);
// people names those of a line of the audit log, one or several.
const people = (d, ids) => (ids || '').split(', ').flatMap((id, i) => [i ? ', ' : '', named((d.names || {})[id], id)]);
// chatOf names a chat: a group by its title, a private one by its person, by ids only where nothing else is known.
const chatOf = (s) => `${s.title || (s.group ? `group ${s.chat}` : s.name ? 'private chat' : `private ${s.chat}`)}${s.topic ? ` / ${s.topic}` : ''}${s.surface && s.surface !== 'bot' ? ` (${s.surface})` : ''}`;

function turn(query, data, key = 'page') {
  const page = data[key] || 0;
  const go = (n) => () => open(state.panel, { ...state.query, [key]: n });
  return pager(page > 0 ? go(page - 1) : null, data.more ? go(page + 1) : null);
}

const laneColumns = [
  ['Session', (s) => [session(s.key, chatOf(s)), s.title ? h('small', { class: 'quiet' }, ` ${s.chat}`) : '']],
  ['Person', (s) => person(s)],
  ['State', (s) => colour(s.stop ? 'error' : s.state, s.stop ? 'stopping' : LANES[s.state] || s.state)],
  ['Last activity', (s) => moment(s.since)],
  ['Steps', (s) => count(s.entries), 'n'],
];

// ask asks before something cannot be taken back.
async function ask(text, yes) {
  $('ask-text').textContent = text;
  $('ask-yes').textContent = yes;
  return await dialog('ask', { yes: 'ask-yes' }) === 'yes';
}

// look shows what a question would do, and decides about it as its card in the chat does.
async function look(a) {
  let q;
  try {
    q = await post('question', { question: a.question, do: 'show' });
  } catch (err) {
    toast(err.message, true);
    return;
  }
  $('question-text').textContent = q.text;
  $('question-file').hidden = !q.file;
  $('question-file').textContent = q.file || '';
  const what = await dialog('question', { approve: 'question-approve', deny: 'question-deny' });
  if (what) await send('question', { question: q.question, do: what, seen: q.seen });
}

// dialog shows a dialog and returns the name of the button that ended it; "" = it was left. The event "close" comes some
// time after the dialog has been closed, when another one may be open already, so nothing waits for it.
function dialog(id, buttons) {
  const box = $(id);
  return new Promise((done) => {
    const end = (answer) => () => { box.close(); done(answer); };
    for (const [name, button] of Object.entries(buttons)) $(button).onclick = end(name);
    $(`${id}-no`).onclick = end('');
    box.oncancel = () => done('');
    box.showModal();
  });
}

async function send(path, body) {
  try {
    const out = await post(path, body);
    toast(out.said);
  } catch (err) {
    toast(err.message, true);
  }
  refresh();
}

// limit changes a limit, as /quota does in the chat.
async function limit(b) {
  $('limit-title').textContent = `${unitOf(b)} of ${ownerOf(b)}, ${b.window === 'month' ? 'each month' : 'each day'}`;
  const field = $('limit-value');
  field.value = b.limit ? String(b.unit === 'microusd' ? b.limit / 1e6 : b.limit) : '';
  field.step = b.unit === 'microusd' ? 'any' : '1';
  $('limit-unset').hidden = !b.by;
  $('limit-form').onsubmit = (e) => { e.preventDefault(); $('limit-set').click(); };
  const what = await dialog('limit', { set: 'limit-set', off: 'limit-off', unset: 'limit-unset' });
  if (what) await send('limit', { level: b.level, unit: b.unit, window: b.window, limit: { set: field.value.trim() || '0', off: 'off', unset: '' }[what] });
}

async function decide(kind, id, what) {
  if (what === 'drop' && !await ask('Drop it for good? It is neither tried again nor listed any more.', 'Drop')) return;
  await send('letter', { kind, id, do: what });
}

const choices = (kind, id, kept) => h('span', { class: 'choices' },
  h('button', { type: 'button', 'data-do': 'retry', 'data-focus': `retry ${kind} ${id}`, disabled: !kept, title: kept ? 'Try it once more' : 'Its content has been deleted', onclick: () => decide(kind, id, 'retry') }, 'Retry'),
  h('button', { type: 'button', class: 'danger', 'data-do': 'drop', 'data-focus': `drop ${kind} ${id}`, onclick: () => decide(kind, id, 'drop') }, 'Drop'));

const SENT = { final: 'answer', reply: 'reply', question: 'approval card', record: 'edit of a card', notice: 'notice', placeholder: 'placeholder', toast: 'pop-up' };
const rowWords = (r) => `${SENT[r.purpose] || r.purpose}${r.file ? `, ${r.file}` : ''}${r.length ? `, ${count(r.length)} bytes` : ''}`;

export const panels = {
  sessions: {
    title: 'Sessions', sign: '☰', path: 'sessions',
    filters: [{ name: 'text', label: 'Search', placeholder: 'chat, person or turn' }, { name: 'state', label: 'State', options: [['', 'any'], ...Object.entries(LANES)] }],
    note: (d) => `${number(d.all, 'session')}${d.cut ? ' among the first 10 000' : ''}; those that work come first.`,
    show: (d) => [table('Sessions', laneColumns, d.sessions, 'No session is like that.'), turn({}, d)],
  },
  queue: {
    title: 'Queue', sign: '↻', path: 'queue',
    note: () => 'What waits, what runs, and what is on its way to people.',
    show: (d) => [
      part('Turns in progress', d.turns.length, table('Turns in progress', [...laneColumns.slice(0, 4), ['Process', (s) => (s.owner ? s.owner.slice(0, 8) : '')]], d.turns, 'Nothing is in progress.')),
      part('Messages that wait', d.more ? `${d.arrivals.length}+` : d.arrivals.length, table('Messages that wait', [
        ['Accepted', (a) => moment(a.at)], ['Session', (a) => session(a.session) || 'none'], ['Kind', (a) => (a.express ? 'express' : a.source || 'message')],
        ['Attempts', (a) => count(a.attempts), 'n'], ['Problem', (a) => a.problem || ''],
      ], d.arrivals, 'Nothing waits.'), d.more ? pager(null, () => open('queue', { after: d.arrivals.at(-1).seq })) : state.query.after ? pager(() => open('queue', {}), null) : ''),
      part('To be sent', d.rows.length, table('To be sent', [
        ['Since', (r) => moment(r.created)], ['What', rowWords], ['Chat', (r) => named(r.title, r.chat)], ['State', (r) => colour(r.state)], ['Not before', (r) => moment(r.not_before)],
        ['Attempts', (r) => count(r.attempts), 'n'], ['Problem', (r) => r.problem || ''],
      ], d.rows, 'Everything was sent.')),
    ],
  },
  letters: {
    title: 'Dead letters', sign: '✉', path: 'letters',
    note: () => 'What was given up. Retry or drop; either is in the audit log.',
    show: (d) => [
      part('Messages that could not be handled', d.arrivals.length, table('Messages that could not be handled', [
        ['Accepted', (a) => moment(a.at)], ['Session', (a) => session(a.session) || a.id], ['Problem', (a) => a.problem], ['Attempts', (a) => count(a.attempts), 'n'], ['Decide', (a) => choices('arrival', a.seq, a.kept), 'end'],
      ], d.arrivals, 'No message was given up.')),
      part('Answers that may not have arrived', d.rows.length, table('Answers that may not have arrived', [
        ['Made', (r) => moment(r.created)], ['What', rowWords], ['Session', (r) => session(r.session, r.title) || named(r.title, r.chat)], ['State', (r) => colour(r.state, r.state === 'dead' ? 'given up' : r.state)],
        ['Problem', (r) => r.problem || ''], ['Decide', (r) => choices('row', r.id, r.kept), 'end'],
      ], d.rows, 'Everything has arrived.'), d.before ? pager(null, () => open('letters', { before: d.before })) : ''),
    ],
  },
  approvals: {
    title: 'Approvals', sign: '✋', path: 'approvals',
    note: () => 'Questions that wait. A decision here is that of the card in the chat, by the same rules; looking is in the audit log.',
    show: (d) => [table('Approvals that wait', [
      ['Tool', (a) => h('code', {}, a.tool)], ['Asked by', person], ['Session', (a) => session(a.session, a.title || `chat ${a.chat}`)], ['Since', (a) => moment(a.since)], ['Expires', (a) => moment(a.expires)],
      ['Approved', (a) => `${a.votes} of ${a.needed}`, 'n'], ['Name', (a) => a.short],
      ['Decide', (a) => (a.question ? h('button', { type: 'button', 'data-do': 'look', 'data-focus': `look ${a.question}`, 'aria-label': `Look at ${a.short} and decide`, onclick: () => look(a) }, 'Look …') : 'in the chat'), 'end'],
    ], d.approvals, 'No question waits.')],
  },
  servers: {
    title: 'MCP servers', sign: '⇄', path: 'servers',
    note: () => 'Of this process.',
    show: (d) => [table('MCP servers', [
      ['Server', (s) => [h('strong', {}, s.id), s.name ? h('small', {}, ` ${s.name}`) : '']], ['State', (s) => colour(s.state)], ['Since', (s) => moment(s.since)], ['Transport', (s) => s.transport],
      ['Trust', (s) => s.trust], ['Tools', (s) => h('span', { title: s.tools.join(', ') }, `${s.tools.length}${s.waiting.length ? `, ${s.waiting.length} wait to be accepted` : ''}`), 'n'],
      ['Problem', (s) => [s.problem, ...s.warnings].filter(Boolean).join(' · ')],
    ], d.servers, 'No server is configured.')],
  },
  quotas: {
    title: 'Quotas', sign: '◔', path: 'quotas', every: 15000,
    note: () => 'Use of today and of this month; nearest to their limits first.',
    show: (d) => [h('ul', { class: 'bars' }, d.bars.map(bar)), d.bars.length ? '' : h('p', { class: 'empty' }, 'Nothing was used this month.'), turn({}, d)],
  },
  audit: {
    title: 'Audit', sign: '⌕', path: 'audit', every: 30000,
    filters: [
      { name: 'person', label: 'Person', placeholder: 'id, such as 4711' }, { name: 'tool', label: 'Tool', placeholder: 'bash' }, { name: 'result', label: 'Result', options: RESULTS },
      { name: 'since', label: 'From', type: 'datetime-local' }, { name: 'until', label: 'Until', type: 'datetime-local' },
    ],
    note: (d) => (d.off ? 'There is no audit log that could be searched (audit.enabled, audit.destination).' : d.problem ? `Not everything could be read: ${d.problem}` : 'Newest first, over all logs of the service.'),
    show: (d) => [
      table('Lines of the audit log', [
        ['Time', (l) => moment(l.at)], ['Tool', (l) => h('code', {}, l.tool || l.kind)], ['Person', (l) => people(d, l.caller)], ['Result', (l) => (l.result ? colour(l.result) : l.kind || '')],
        ['Rule', (l) => l.rule || ''], ['Approved by', (l) => [...people(d, l.approved_by), l.layer_applied ? ' · layer ' + l.layer_applied.slice(0, 12) + ' applied' : '']], ['Took', (l) => (l.millis ? span(l.millis) : ''), 'n'],
        ['Reason', (l) => l.reason || l.url || ''],
      ], d.lines, d.next ? 'Nothing of this kind so far.' : 'Nothing of this kind is in the log.'),
      pager(state.query.next ? () => open('audit', { ...state.query, next: '' }) : null, d.next ? () => open('audit', { ...state.query, next: d.next }) : null),
    ],
  },
  costs: {
    title: 'Costs', sign: '$', path: 'costs', every: 60000,
    filters: [{ name: 'days', label: 'Period', options: [['', '30 days'], ['7', '7 days'], ['90', '90 days'], ['365', 'a year']] }],
    note: (d) => {
      const sum = d.days.reduce((n, day) => n + day.usd, 0);
      const turns = d.days.reduce((n, day) => n + day.turns, 0);
      const known = sum > 0 || !d.priceless.length ? usd(sum) : 'Unknown costs';
      return `${known} for ${number(turns, 'turn')} in ${number(d.days.length, 'day')}.${d.priceless.length ? ` Nobody knows the price of ${d.priceless.join(', ')}: what they cost is not in the sums.` : ''}`;
    },
    show: costs,
  },
};

const amount = (n, unit) => (unit === 'microusd' ? usd(n / 1e6) : count(n));
const unitOf = (b) => ({ microusd: 'USD', tokens: 'Tokens' }[b.unit] || 'Turns');

// ownerOf names whose limit it is: a person, a group, or the bot.
function ownerOf(b) {
  const [kind, ...rest] = b.level.split('/');
  if (kind === 'bot') return 'the whole bot';
  return b.name || (kind === 'chat' ? rest.at(-1) : rest.join('/'));
}

// price is what something has cost, or that nobody knows: tokens were used, but the price of a model is unknown.
const price = (x, d) => (x.usd === 0 && x.tokens !== 0 && d.priceless.length ? h('span', { class: 'quiet', title: 'Nobody knows the price of the model' }, 'unknown') : usd(x.usd));

function bar(b) {
  const [kind, ...rest] = b.level.split('/');
  const used = amount(b.used, b.unit);
  return h('li', { class: 'quota' },
    h('p', { class: 'quota-head' }, h('span', {}, tag({ user: 'person', chat: 'chat', bot: 'bot' }[kind] || kind), ' ', h('strong', { title: rest.join('/') }, ownerOf(b)), b.name ? h('small', {}, ` ${rest.join('/')}`) : null),
      b.set ? h('button', { type: 'button', class: 'link', 'data-focus': `limit ${b.level} ${b.unit} ${b.window}`, 'data-limit': b.level, 'aria-label': `Change the limit of ${ownerOf(b)}: ${unitOf(b)} ${b.window === 'month' ? 'this month' : 'today'}`, onclick: () => limit(b) }, 'Change …') : null),
    h('p', { class: 'quota-head' }, h('span', {}, `${unitOf(b)} ${b.window === 'month' ? 'this month' : 'today'}`),
      h('span', {}, b.limit ? `${used} of ${amount(b.limit, b.unit)}` : `${used}, no limit`)),
    b.limit ? share(b.used, b.limit) : null,
    h('p', { class: 'quiet small' }, b.limit ? (b.by ? ['limit set by ', b.by, ', ', moment(b.at)] : 'limit from the configuration') : null, b.limit ? [' · afresh ', moment(b.fresh)] : null));
}

function costs(d) {
  const day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', timeZone: 'UTC' });
  const label = (text) => day.format(new Date(`${text}T00:00:00Z`));
  const money = d.days.some((x) => x.usd > 0);
  const data = d.days.map((x) => ({ label: label(x.day), value: money ? x.usd : x.tokens }));
  return [
    part(money ? 'USD a day' : 'Tokens a day', 0, columns(money ? 'What models cost, by day' : 'Tokens of models, by day', data, (n) => (money ? usd(n) : count(Math.round(n)))),
      h('details', {}, h('summary', {}, 'As a table'), table('Costs by day', [
        ['Day', (x) => label(x.day)], ['Turns', (x) => count(x.turns), 'n'], ['Tokens', (x) => count(x.tokens), 'n'], ['USD', (x) => price(x, d), 'n'],
      ], [...d.days].reverse().filter((x) => x.turns || x.tokens || x.usd), 'Nothing was used.'))),
    part('People', d.people.length, spenders(d, d.people, 'People who cost most', 'Nobody has used anything.')),
    part('Providers', 0, h('p', { class: 'quiet small' }, 'Since this process started.'), spenders(d, d.providers, 'Costs by provider', 'This process has called no model.', true)),
  ];
}

function spenders(d, list, caption, empty, plain = false) {
  const money = list.some((x) => x.usd > 0);
  const value = (x) => (money ? x.usd : x.tokens || 0);
  const most = Math.max(...list.map(value), 0);
  return table(caption, [
    [plain ? 'Provider' : 'Person', (x) => named(x.name, x.id)], ['Share', (x) => (most ? share(value(x), most, true) : ''), 'wide'],
    ...(plain ? [] : [['Turns', (x) => count(x.turns || 0), 'n'], ['Tokens', (x) => count(x.tokens || 0), 'n']]), ['USD', (x) => price(x, d), 'n'],
  ], list, empty);
}

// badges are the numbers beside the names of the panels.
export function badges(me) {
  const c = me.counts;
  return { sessions: c.Running + c.Parked + c.Waiting, queue: c.Queued + c.Undelivered, letters: c.DeadLetters + c.Lost, approvals: me.approvals };
}
