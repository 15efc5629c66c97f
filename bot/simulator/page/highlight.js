// Colours for code: comments, strings, numbers and the words of a language, by the rules that the terminal has too
// (package syntax). What is not known stays plain.
import { h } from './dom.js';
import rules from './languages.js';

const LONGEST = 50000; // characters that are coloured

const known = new Map(); // by name: {pattern, words, anycase, always}

function languageOf(name) {
  const key = Object.hasOwn(rules.same, name) ? rules.same[name] : name;
  if (!Object.hasOwn(rules.languages, key)) return null;
  if (!known.has(key)) {
    const l = rules.languages[key];
    const style = rules.styles[l.style];
    const parts = [['plain', style.plain], ['comment', style.comment], ['string', style.string],
      ['number', String.raw`\b\d[\w.]*`], ['word', style.word || String.raw`[A-Za-z_$][\w$]*`]];
    known.set(key, {
      pattern: new RegExp(parts.filter(([, p]) => p).map(([kind, p]) => `(?<${kind}>${p})`).join('|'), 'g'),
      words: new Set(l.words.split(' ')), anycase: l.anycase, always: Boolean(style.word),
    });
  }
  return known.get(key);
}

// highlight returns the nodes of a piece of code in a language. Their text together is the code.
export function highlight(code, name = '') {
  const lower = name.toLowerCase();
  if (code.length > LONGEST) return [code];
  if (lower === 'diff' || lower === 'patch') return diff(code);
  const language = languageOf(lower);
  if (!language) return [code];
  const out = [];
  let at = 0;
  for (const match of code.matchAll(language.pattern)) {
    const [[kind, text]] = Object.entries(match.groups).filter(([, value]) => value !== undefined);
    if (text === '' || kind === 'plain') continue;
    if (kind === 'word' && !language.always && !language.words.has(language.anycase ? text.toLowerCase() : text)) continue;
    if (match.index > at) out.push(code.slice(at, match.index));
    out.push(h('span', { class: `code-${kind}` }, text));
    at = match.index + text.length;
  }
  out.push(code.slice(at));
  return out;
}

function diff(code) {
  return code.split(/(?<=\n)/).map((line) => {
    const kind = /^(?:@@|diff |index |\+\+\+|---)/.test(line) ? 'comment' : { '+': 'plus', '-': 'minus' }[line[0]];
    return kind ? h('span', { class: `code-${kind}` }, line) : line;
  });
}
