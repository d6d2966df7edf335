# What Perl's encoders make of a text: lines of JSON, [name, text].
use strict;
use JSON::PP;
my $value = $ARGV[0];
sub say_it { print JSON::PP->new->encode(["Perl: $_[0]", $_[1]]), "\n" }

say_it('JSON::PP', JSON::PP->new->allow_nonref->encode($value));
if (eval { require URI::Escape }) {
    say_it('uri_escape', URI::Escape::uri_escape($value));
    say_it('uri_escape of all but letters and digits', URI::Escape::uri_escape($value, '^A-Za-z0-9'));
}
if (eval { require HTML::Entities }) {
    say_it('encode_entities', HTML::Entities::encode_entities($value));
    say_it('encode_entities_numeric', HTML::Entities::encode_entities_numeric($value));
}
if (eval { require CGI }) {
    say_it('CGI::escape', CGI::escape($value));
    say_it('CGI::escapeHTML', CGI::escapeHTML($value));
}
