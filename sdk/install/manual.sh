#!/bin/bash
# The man page and the completions for bash, zsh and fish, made of the help of the program itself.
# Usage: manual.sh PROGRAM VERSION FOLDER
set -eu
program=$1 version=$2 folder=$3
mkdir -p "$folder"

# What help says, a line each, with tabs between: the command ("-": none); "command", "operand" or "option"; the name; what it takes,
# "..." behind it where it may be given again; the help.
table() {
  local command help
  while IFS=$'\t' read -r command help; do
    printf '%s\tcommand\t%s\t\t%s\n' "$command" "$command" "$help"
    "$program" "$command" --help | awk -v command="$command" '
      function put() { if (name != "") print command "\t" kind "\t" name "\t" takes "\t" text; name = "" }
      /^Positionals:/ { kind = "operand"; next }
      /^Options:/ { kind = "option"; next }
      /^          / && name != "" { sub(/^ +/, ""); text = text == "" ? $0 : text " " $0; next }
      /^  [^ ]/ && kind != "" {
        put()
        line = substr($0, 3)
        text = match(line, /   *[^ ]/) ? substr(line, RSTART) : ""
        sub(/^ +/, "", text)
        head = text == "" ? line : substr(line, 1, RSTART - 1)
        sub(/^-h,/, "", head)
        sub(/ REQUIRED/, "", head)
        name = head; sub(/ .*/, "", name)
        takes = head == name ? "" : substr(head, length(name) + 2)
        next
      }
      { put(); kind = "" }
      END { put() }'
  done < <("$program" --help | awk '/^Subcommands:/ { inside = 1; next } /^ *$/ { inside = 0 }
                                    inside { name = $1; sub(/^ *[^ ]+ +/, ""); print name "\t" $0 }')
}
table >"$folder/table"

# Of roff, a backslash, a hyphen and a dot or quote that begins a line mean something.
awk -F'\t' -v version="$version" '
  function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return text }
  function line(text) { text = roff(text); return text ~ /^[.\047]/ ? "\\&" text : text }
  BEGIN {
    print ".TH HEDDLE 1 \"\" \"heddle " version "\" \"User Commands\""
    print ".SH NAME\nheddle \\- run workflow graphs of diffusion models"
    print ".SH SYNOPSIS\n.B heddle\n.I COMMAND\n.RI [ OPTION ...]\n.RI [ OPERAND ...]\n.SH COMMANDS"
  }
  $2 == "command" { print ".SS heddle " roff($3); print line(toupper(substr($5, 1, 1)) substr($5, 2)) "." }
  $2 != "command" { print ".TP\n.B " roff($3) (($4 == "") ? "" : " \\fI" roff($4) "\\fR"); print line($5) }
  END {
    print ".SH CONFIGURATION\nEvery option is also a key of\n.I heddle.json\nbeside the workflow, or of"
    print ".IR $XDG_CONFIG_HOME/heddle/config.json ,\nand a variable HEDDLE_OPTION."
    print ".SH ENVIRONMENT\n.TP\n.B HEDDLE_PLUGIN_PATH\nFolders of plugins, with colons between them."
    print ".SH FILES\n.TP\n.I ~/.local/share/heddle/plugins\nPlugins of the user ($XDG_DATA_HOME/heddle/plugins)."
    print ".SH EXIT STATUS\n0: done; 1: the run failed; 2: the workflow or the usage is wrong; 130: interrupted."
  }' "$folder/table" >"$folder/heddle.1"

# bash: of a value only files, folders and words to choose from are known; where nothing is offered, files are.
awk -F'\t' '
  $2 == "command" { commands = commands " " $3 }
  $2 == "option" {
    options[$1] = options[$1] " " $3
    value = $4; sub(/ ?\.\.\.$/, "", value)
    if (value == "DIR") kind[$3] = "folder"
    else if (value ~ /\|/) { gsub(/\|/, " ", value); kind[$3] = value }
    else if (value != "" && value != "FILE") kind[$3] = "free"
  }
  END {
    print "# Completions of heddle for bash, made of its help.\n_heddle() {"
    print "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= options= word"
    print "  COMPREPLY=()\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    [[ $word == -* ]] || { command=$word; break; }\n  done"
    print "  case $before in"
    for (name in kind) {
      if (kind[name] == "folder") what = "mapfile -t COMPREPLY < <(compgen -d -- \"$current\")"
      else if (kind[name] == "free") what = "compopt +o default 2>/dev/null"
      else what = "mapfile -t COMPREPLY < <(compgen -W \"" kind[name] "\" -- \"$current\")"
      print "    " name ") " what "; return ;;" | "LC_ALL=C sort"
    }
    close("LC_ALL=C sort")
    print "  esac\n  case $command in\n    \"\") options=\"" substr(commands, 2) " --help --version\" ;;"
    count = split(substr(commands, 2), each, " ")
    for (i = 1; i <= count; ++i) print "    " each[i] ") options=\"" substr(options[each[i]], 2) "\" ;;"
    print "  esac\n  if [[ -z $command || $current == -* ]]; then\n    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n  fi\n}"
    print "complete -o default -F _heddle heddle"
  }' "$folder/table" >"$folder/heddle.bash"

# zsh: brackets and colons mean something to _arguments, quotes to the shell.
awk -F'\t' '
  function plain(text) { gsub(/[]\\:[]/, "\\\\&", text); gsub(/\047/, "\047\\\047\047", text); return text }
  function values(value) {
    if (value ~ /^(DIR|FILE)/) return value ~ /^DIR/ ? "_files -/" : "_files"
    if (value !~ /\|/) return ""
    gsub(/\|/, " ", value)
    return "(" value ")"
  }
  BEGIN { print "#compdef heddle\n# Completions of heddle for zsh, made of its help.\n_heddle() {\n  local -a commands=(" }
  $2 == "command" { described = described "    \047" $3 ":" plain($5) "\047\n"; order[++count] = $3 }
  $2 == "option" {
    value = $4; again = sub(/ ?\.\.\.$/, "", value)
    spec = (again ? "*" : "") $3 (value == "" ? "" : "=") "[" plain($5) "]" (value == "" ? "" : ":" plain(value) ":" values(value))
    specs[$1] = specs[$1] " \\\n        \047" spec "\047"
  }
  $2 == "operand" { value = $4; again = value ~ /\.\.\.$/; specs[$1] = specs[$1] " \\\n        \047" (again ? "*" : "1") ":" plain($3) ":_files\047" }
  END {
    printf "%s  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n  shift words\n  ((CURRENT--))\n  case $words[1] in\n", described
    for (i = 1; i <= count; ++i) print "    " order[i] ")\n      _arguments" specs[order[i]] "\n      ;;"
    print "  esac\n}\n_heddle \"$@\""
  }' "$folder/table" >"$folder/_heddle"

# fish: in single quotes, a backslash and a quote mean something.
awk -F'\t' '
  function plain(text) { gsub(/[\\\047]/, "\\\\&", text); return "\047" text "\047" }
  BEGIN { print "# Completions of heddle for fish, made of its help." }
  $2 == "command" { print "complete -c heddle -n __fish_use_subcommand -f -a " $3 " -d " plain($5) }
  $2 == "option" {
    value = $4; sub(/ ?\.\.\.$/, "", value)
    how = ""
    if (value == "FILE") how = " -r -F"
    else if (value == "DIR") how = " -x -a \047(__fish_complete_directories)\047"
    else if (value ~ /\|/) { gsub(/\|/, " ", value); how = " -x -a " plain(value) }
    else if (value != "") how = " -x"
    print "complete -c heddle -n \047__fish_seen_subcommand_from " $1 "\047 -l " substr($3, 3) how " -d " plain($5)
  }' "$folder/table" >"$folder/heddle.fish"
rm "$folder/table"
