/** Scripts that complete commands, their sub-commands and options in a shell, made from the commands themselves. Pure. */
import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** A command by its words, with what may follow. */
interface Completion {
  readonly words: string;
  readonly next: readonly string[];
}

/** The script; undefined for a shell that is not known. */
export function completionScript(shell: string, program: Command): string | undefined {
  const completions = collect(program, []);
  switch (shell) {
    case 'bash':
      return bash(completions);
    case 'zsh':
      return `autoload -U +X bashcompinit && bashcompinit\n${bash(completions)}`;
    case 'fish':
      return fish(completions);
    default:
      return undefined;
  }
}

function collect(command: Command, words: readonly string[]): Completion[] {
  const options = command.options
    .flatMap(({ short, long }) => [short, long])
    .filter((one) => one !== undefined);
  const commands = command.commands.map((one) => one.name());
  return [
    { words: words.join(' '), next: [...commands, ...options, '--help'] },
    ...command.commands.flatMap((one) => collect(one, [...words, one.name()])),
  ];
}

function bash(completions: readonly Completion[]): string {
  const cases = completions
    .filter(({ words }) => words !== '')
    .map(({ words, next }) => `    '${words}') next='${next.join(' ')}' ;;`);
  const top = completions.find(({ words }) => words === '')?.next ?? [];
  return `_isobar() {
  local word words='' next
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) words="\${words:+$words }$word" ;; esac
  done
  next='${top.join(' ')}'
  while [ -n "$words" ]; do
    case "$words" in
${cases.map((line) => `  ${line}`).join('\n')}
      *) words="\${words% *}"; continue ;;
    esac
    break
  done
  COMPREPLY=( $(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}") )
  case "\${COMP_WORDS[COMP_CWORD]}" in -*) ;; *) COMPREPLY+=( $(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}") ) ;; esac
}
complete -o filenames -F _isobar isobar
`;
}

function fish(completions: readonly Completion[]): string {
  const lines = completions.flatMap(({ words, next }) => {
    const path = words.split(' ').filter((word) => word !== '');
    const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    const condition = path.length === 0 ? '__fish_use_subcommand' : seen;
    return next.map((one) => {
      const what = one.startsWith('--')
        ? `-l ${one.slice(2)}`
        : one.startsWith('-')
          ? `-s ${one.slice(1)}`
          : `-a ${one}`;
      return `complete -c isobar -n '${condition}' ${what}`;
    });
  });
  return `${lines.join('\n')}\n`;
}
