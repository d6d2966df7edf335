// What Node's encoders and those of usual packages make of a text: lines of JSON, [name, text].
// argv: the text, then folders of packages.
const { createRequire } = require('module');
const value = process.argv[2];
const say = (name, text) => console.log(JSON.stringify(['Node: ' + name, text]));
const packages = {
  mustache: (m) => m.render('<p>{{a}}</p>', { a: value }),
  handlebars: (m) => m.compile('<p>{{a}}</p>')({ a: value }),
  lodash: (m) => m.escape(value),
  'escape-html': (m) => m(value),
  encodeurl: (m) => m('https://h/x?a=' + value),
  qs: (m) => m.stringify({ a: value }),
  entities: (m) => m.encodeHTML(value),
};

say('JSON', JSON.stringify(value));
say('encodeURIComponent', encodeURIComponent(value));
say('encodeURI', encodeURI(value));
say('escape', escape(value));
say('URLSearchParams', new URLSearchParams({ a: value }).toString());
say('querystring', require('querystring').stringify({ a: value }));
const url = new URL('https://h/');
url.search = 'a=' + value;
say('URL, a search', url.href);
url.search = '';
url.password = value;
say('URL, a password', url.href);
say('util.inspect', require('util').inspect({ a: value }));
for (const [name, use] of Object.entries(packages)) {
  for (const folder of process.argv.slice(3)) {
    let found;
    try {
      found = createRequire(folder + '/x.js')(name);
    } catch (e) {
      if (e.code !== 'MODULE_NOT_FOUND') throw e;
      continue;
    }
    say(name, use(found));
    break;
  }
}
