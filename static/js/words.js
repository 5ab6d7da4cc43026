// This page's own sentences in its reader's language. English is what stands in the scripts; another language is a
// module that the page loads before all others (words/ru.js, which `python -m lab.words` writes from the catalogue).

const known = new Map();          // English → its translation, or one for each form of a count
let forms = ["one", "other"];     // what the language's counts are called, in the order of those translations
let rule = new Intl.PluralRules("en");

/** Take over a language: `names` are those of its plural forms, `pairs` English and its translation. */
export function learn(language, names, pairs) {
  rule = new Intl.PluralRules(language);
  forms = names;
  for (const [english, translated] of pairs) known.set(english, translated);
}

const filled = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (hole, name) => (name in values ? values[name] : hole));

/** `english` as the reader says it; `{name}` in it stands for a value. Always a literal, so that it is found. */
export const phrase = (english, values = {}) => filled(known.get(english) ?? english, values);

/** The same for a sentence with a count in it, `{n}`: its English for one, and for any other number. */
export function counted(one, other, n, values = {}) {
  const all = known.get(one) ?? [one, other];
  const form = forms.indexOf(rule.select(n));
  return filled(all[form < 0 ? all.length - 1 : form], { n, ...values });
}
