"""What Python's encoders and those of usual packages make of a text: lines of JSON, [name, text]."""
import html
import json
import quopri
import sys
import urllib.parse
import xml.etree.ElementTree
import xml.sax.saxutils

value = sys.argv[1]


def say(name, text):
    print(json.dumps(["Python: " + name, text]))


say("json", json.dumps(value))
say("html.escape", html.escape(value))
say("quote", urllib.parse.quote(value))
say("quote of all", urllib.parse.quote(value, safe=""))
say("quote_plus", urllib.parse.quote_plus(value))
say("a URL in a URL", "/login?next=" + urllib.parse.quote("/x?key=" + urllib.parse.quote(value, safe="")))
say("repr", repr(value))
say("saxutils.escape", xml.sax.saxutils.escape(value))
element = xml.etree.ElementTree.Element("a", b=value)
say("ElementTree, an attribute", xml.etree.ElementTree.tostring(element).decode())
say("quoted-printable", quopri.encodestring(value.encode()).decode())
try:
    import jinja2
except ImportError:
    jinja2 = None
if jinja2:
    made = jinja2.Environment(autoescape=True)
    for name, text in (("a text", "{{a}}"), ("tojson", "<script>{{a|tojson}}</script>"), ("urlencode", "{{a|urlencode}}")):
        say("Jinja, " + name, made.from_string(text).render(a=value))
try:
    import django.conf
    from django.template import Context, Template
except ImportError:
    django = None
if django:
    django.conf.settings.configure(TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
    django.setup()
    for name, text in (("a text", "{{a}}"), ("escapejs", "{{a|escapejs}}"), ("json_script", "{{a|json_script:'x'}}")):
        say("Django, " + name, Template(text).render(Context({"a": value})))
