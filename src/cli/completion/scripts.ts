import { questionWord } from './complete.ts';

export const scripts = {
  bash: `# rankd completion for bash
_rankd() {
  local current=\${COMP_WORDS[COMP_CWORD]} answer line kind=-f
  COMPREPLY=()
  answer=$("$1" ${questionWord} "\${COMP_WORDS[@]:1:COMP_CWORD-1}" ":$current" 2>/dev/null) || return 0
  case $answer in
    '') return 0 ;;
    :file | :directory)
      compopt -o filenames 2>/dev/null
      [[ $answer == :directory ]] && kind=-d
      [[ $current == = ]] && current=
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$kind" -- "$current")
      return 0
      ;;
  esac
  while IFS= read -r line; do COMPREPLY+=("\${line%%$'\\t'*}"); done <<<"$answer"
}
complete -F _rankd rankd
`,
  zsh: `#compdef rankd
# rankd completion for zsh
_rankd() {
  local -a answer candidates
  local line
  answer=("\${(@f)$("\${words[1]}" ${questionWord} "\${(@)words[2,CURRENT-1]}" ":\${words[CURRENT]}" 2>/dev/null)}")
  case $answer[1] in
    '') return 1 ;;
    :file) _files; return ;;
    :directory) _files -/; return ;;
  esac
  for line in $answer; do candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}"); done
  _describe rankd candidates
}
if [[ $funcstack[1] == _rankd ]]; then _rankd "$@"; else compdef _rankd rankd; fi
`,
  fish: `# rankd completion for fish
function __rankd_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] ${questionWord} $words[2..-1] ":$current" 2>/dev/null)
    switch "$answer[1]"
        case ':file'
            __fish_complete_path "$current"
        case ':directory'
            __fish_complete_directories "$current"
        case '*'
            printf '%s\\n' $answer
    end
end
complete -c rankd -f -a '(__rankd_candidates)'
`,
  powershell: `# rankd completion for PowerShell
Register-ArgumentCompleter -Native -CommandName rankd -ScriptBlock {
    param($current, $line, $cursor)
    $words = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.ToString() })
    $before = @($words | Select-Object -Skip 1)
    foreach ($candidate in @(& $words[0] ${questionWord} @before ":$current" 2>$null)) {
        if ($candidate -eq ':file' -or $candidate -eq ':directory') { return }
        $value, $meaning = $candidate -split "\`t", 2
        if (-not $meaning) { $meaning = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $meaning)
    }
}
`,
} as const;

export type Shell = keyof typeof scripts;
