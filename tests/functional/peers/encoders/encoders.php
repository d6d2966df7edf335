<?php
// What PHP's encoders make of a text: lines of JSON, [name, text].
$value = $argv[1];
function say($name, $text) { echo json_encode(["PHP: $name", $text]), "\n"; }

say('json_encode', json_encode($value));
say('json_encode for HTML', json_encode($value, JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS | JSON_HEX_QUOT));
say('htmlspecialchars', htmlspecialchars($value));
say('htmlspecialchars of HTML 5', htmlspecialchars($value, ENT_QUOTES | ENT_HTML5));
say('htmlentities of HTML 5', htmlentities($value, ENT_QUOTES | ENT_HTML5));
say('rawurlencode', rawurlencode($value));
say('urlencode', urlencode($value));
say('http_build_query', http_build_query(['a' => $value]));
say('addslashes', addslashes($value));
say('var_export', var_export($value, true));
say('FILTER_SANITIZE_SPECIAL_CHARS', filter_var($value, FILTER_SANITIZE_SPECIAL_CHARS));
say('FILTER_SANITIZE_ENCODED', filter_var($value, FILTER_SANITIZE_ENCODED));
say('quoted_printable_encode', quoted_printable_encode($value));
