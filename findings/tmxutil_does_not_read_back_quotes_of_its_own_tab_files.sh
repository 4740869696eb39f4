#!/usr/bin/env bash
# tmxutil 1.3, Python 3.11: sentences with a quotation mark change on the way through tmxutil's own tab format.
#
# Expected: `-o tab` writes the texts as they are, like the tab-separated files of ParaCrawl and OPUS; or `-i tab` undoes
# what `-o tab` did.
# Seen: `-o tab` quotes as CSV does, doubling each quotation mark, and `-i tab` takes quotation marks as text. Whoever
# filters a memory in the tab format, with tmxutil or any tool of Bitextor, trains on sentences in extra quotes.
#
# Output:
#   tab:  "Sie sagte: ""Nein."""	"She said: ""No."""
#   back: "Sie sagte: ""Nein."""
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tmxutil==1.3
cat > "$folder/memory.tmx" <<'TMX'
<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en" srclang="de" datatype="x"/>
<body><tu>
<tuv xml:lang="de"><seg>Sie sagte: "Nein."</seg></tuv>
<tuv xml:lang="en"><seg>She said: "No."</seg></tuv>
</tu></body></tmx>
TMX
cd "$folder"
venv/bin/tmxutil memory.tmx -q -o tab --output-languages de en --output-columns de.text en.text > memory.tab
back=$(venv/bin/tmxutil memory.tab -q -i tab -l de en -c text-1 text-2 -o txt --output-languages de)
echo "tab:  $(cat memory.tab)"
echo "back: $back"
[[ "$(cat memory.tab)" == $'"Sie sagte: ""Nein."""\t"She said: ""No."""'* ]]
[[ "$back" == '"Sie sagte: ""Nein."""' ]]
