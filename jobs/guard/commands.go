package guard

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// interpreters run the files that are named after them.
	interpreters = []string{
		"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "source", ".", "python", "python2", "python3", "node", "deno", "bun", "tsx", "ts-node",
		"ruby", "perl", "php", "lua", "Rscript", "pwsh", "osascript",
	}
	// scripts are the endings of files that are run, whoever is asked to.
	scripts = []string{".sh", ".bash", ".zsh", ".py", ".rb", ".pl", ".js", ".mjs", ".cjs", ".ts", ".mk", ".cmake", ".ps1"}
	// readers run nothing: files that they are given are data.
	readers = []string{
		"test", "[", "echo", "printf", "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "cut", "sort", "uniq", "tr", "diff", "cmp",
		"stat", "file", "touch", "rm", "cp", "mv", "mkdir", "ln", "chmod", "git",
	}
	// wrappers run the program that comes after their options.
	wrappers = []string{
		"timeout", "env", "nice", "ionice", "nohup", "exec", "command", "builtin", "time", "xargs", "setsid", "stdbuf", "sudo", "chrt", "taskset", "parallel",
	}
	// fileOptions are options whose argument is a file that says what is to be done.
	fileOptions = []string{"-f", "-c", "--file", "--makefile", "--config", "--rcfile", "--project", "--justfile", "--taskfile"}
	// dirOptions are options whose argument is the directory to work in.
	dirOptions = []string{"-C", "--directory", "--prefix", "--cwd", "--dir"}
	// defaults are the files that programs read when none is named.
	defaults = map[string][]string{
		"make": {"Makefile", "makefile", "GNUmakefile"}, "gmake": {"Makefile", "makefile", "GNUmakefile"}, "just": {"justfile", ".justfile"},
		"task": {"Taskfile.yml", "Taskfile.yaml"}, "rake": {"Rakefile"}, "tox": {"tox.ini"}, "nox": {"noxfile.py"}, "invoke": {"tasks.py"},
		"npm": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json", ".yarnrc.yml"}, "bun": {"package.json"},
		"mvn": {"pom.xml"}, "mvnw": {"pom.xml"}, "gradle": {"build.gradle", "build.gradle.kts"}, "gradlew": {"build.gradle", "build.gradle.kts"},
		"cargo": {"Cargo.toml", "build.rs"}, "mage": {"magefile.go"}, "cmake": {"CMakeLists.txt"}, "meson": {"meson.build"}, "ant": {"build.xml"},
		"bazel": {"MODULE.bazel", "WORKSPACE", ".bazelrc"}, "bazelisk": {"MODULE.bazel", "WORKSPACE", ".bazelrc"}, "composer": {"composer.json"},
		"docker": {"Dockerfile", "compose.yaml", "docker-compose.yml"}, "podman": {"Containerfile", "Dockerfile"}, "dagger": {"dagger.json"},
		"pre-commit": {".pre-commit-config.yaml"}, "earthly": {"Earthfile"},
	}
)

// commandFiles returns the files that shell commands name as something to run, from the root of
// a checkout. setting is the setting that the commands are of.
func commandFiles(setting string, commands []string) set {
	files := set{}
	for _, command := range commands {
		n := naming{set: files, why: setting + " runs it", dirs: []string{""}}
		n.command(command)
	}
	return files
}

// naming collects the files that one command names. Several directories are in question at once:
// a command that changes to one may do so on one way and not on another.
type naming struct {
	set
	why string
	// dirs are the directories that the command may be in.
	dirs []string
}

// command adds the files that a command line names. One that cannot be parsed
// is taken by its words, as if each was run.
func (n *naming) command(line string) {
	parsed, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		for word := range strings.FieldsSeq(line) {
			n.file(strings.Trim(word, `"'();&|<>`))
		}
		return
	}
	syntax.Walk(parsed, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			n.call(wordsOf(node))
			n.substituted(node)
		case *syntax.BinaryCmd: // of several in a row, the last one has all that come before on its left
			if pipe := node.Op == syntax.Pipe || node.Op == syntax.PipeAll; pipe && runsInput(node.Y) {
				n.input(node.X)
			}
		case *syntax.Stmt:
			if runsInput(node) {
				for _, r := range node.Redirs {
					if r.Op == syntax.RdrIn {
						n.file(literal(r.Word))
					}
				}
			}
		}
		return true
	})
}

// substituted adds the files whose content a call runs as other commands print
// it, as in sh -c "$(cat x)".
func (n *naming) substituted(call *syntax.CallExpr) {
	words := wordsOf(call)
	if len(words) == 0 {
		return
	}
	p := program(words)
	for i, w := range call.Args {
		if i != p && !slices.Contains(interpreters, path.Base(words[p])) && words[p] != "eval" {
			continue
		}
		syntax.Walk(w, func(node syntax.Node) bool {
			switch node.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst:
				n.input(node)
				return false
			}
			return true
		})
	}
}

// input adds every file that commands name whose output is run.
func (n *naming) input(node syntax.Node) {
	syntax.Walk(node, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			for _, w := range wordsOf(node) {
				if w != "" && !strings.HasPrefix(w, "-") {
					n.file(w)
				}
			}
		case *syntax.Redirect:
			if node.Op == syntax.RdrIn {
				n.file(literal(node.Word))
			}
		}
		return true
	})
}

// runsInput reports whether a command runs what it reads: an interpreter without a file, or xargs.
func runsInput(s *syntax.Stmt) (runs bool) {
	syntax.Walk(s, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		words := wordsOf(call)
		p := program(words)
		data := func(w string) bool { return !strings.HasPrefix(w, "-") && w != "/dev/stdin" }
		switch {
		case slices.Contains(words[:p], "xargs"):
			runs = runs || !slices.Contains(readers, words[p])
		case slices.Contains(interpreters, path.Base(words[p])):
			runs = runs || !slices.ContainsFunc(words[p+1:], data)
		}
		return true
	})
	return runs
}

// program returns the place of the program that is run in the end, behind those
// that only run another one.
func program(words []string) int {
	p, wrapped := 0, false
	for i, w := range words {
		number := w != "" && w[0] >= '0' && w[0] <= '9'
		switch {
		case slices.Contains(wrappers, path.Base(w)):
			wrapped = true
		case wrapped && (strings.HasPrefix(w, "-") || strings.Contains(w, "=") || number):
		default:
			return i
		}
		p = i
	}
	return p
}

// wordsOf returns the fixed texts of the words of a call.
func wordsOf(call *syntax.CallExpr) []string {
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		words[i] = literal(w)
	}
	return words
}

// literal returns the fixed text of a word; expansions are left out.
func literal(w *syntax.Word) string {
	var text strings.Builder
	syntax.Walk(w, func(node syntax.Node) bool {
		switch part := node.(type) {
		case *syntax.Lit:
			text.WriteString(part.Value)
		case *syntax.SglQuoted:
			text.WriteString(part.Value)
		case *syntax.CmdSubst, *syntax.ParamExp, *syntax.ProcSubst, *syntax.ArithmExp:
			return false
		}
		return true
	})
	return strings.ReplaceAll(text.String(), `\`, "")
}

// call adds the files that the words of one call name: a program that is a file, the
// file that an interpreter runs, arguments of options that name a file, arguments
// that look like a script, and the files that a program reads by itself. There is no
// whole list of programs that run another one: as long as no file of the repository
// was named to run, every argument that has a directory counts as one.
func (n *naming) call(words []string) {
	p := program(words)
	if n.onlyReads(words, p) {
		return
	}
	// interpreted says that an interpreter came before, and not yet the file that it runs.
	// known says that it came: what comes after are the arguments of a file that is guarded itself.
	interpreted, known, before := false, false, ""
	for i, w := range words {
		option, value, joined := strings.Cut(w, "=")
		switch {
		case w == "": // nothing of it is known
		case before == "cd" || before == "pushd" || slices.Contains(dirOptions, before):
			n.directory(w)
		case joined && slices.Contains(dirOptions, option):
			n.directory(value)
		case interpreted && isScript(before, w):
			n.command(w)
		case joined && slices.Contains(fileOptions, option):
			n.file(value)
		case strings.HasPrefix(w, "-"):
		case i == 0, i == p, interpreted, slices.Contains(fileOptions, before), looksRun(w, known):
			n.file(w)
			known = known || interpreted || i == p && strings.Contains(w, "/")
			interpreted = false
		}
		interpreted = interpreted || slices.Contains(interpreters, path.Base(w))
		n.byItself(w)
		before = w
	}
	for _, w := range words { // of directories that come after the program
		n.byItself(w)
	}
}

// byItself adds the files that a program reads when none is named.
func (n *naming) byItself(program string) {
	for _, file := range defaults[path.Base(program)] {
		n.file(file)
	}
}

// onlyReads reports whether the program of a call, which has the place p, runs
// nothing that it is given, and adds the directory of hooks that git is told to run.
func (n *naming) onlyReads(words []string, p int) bool {
	if len(words) == 0 || !slices.Contains(readers, words[p]) {
		return false
	}
	for _, w := range words {
		if _, dir, ok := strings.Cut(w, "core.hooksPath="); ok {
			n.file(dir)
		}
	}
	return true
}

// isScript reports whether a word is a script in itself, as in sh -ec 'cd x && ./y'.
func isScript(option, w string) bool {
	short := strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--")
	return short && strings.HasSuffix(option, "c") && strings.ContainsAny(w, " ;|&")
}

// looksRun reports whether an argument looks like a file that is run, by its own name.
func looksRun(w string, known bool) bool {
	return !known && strings.Contains(w, "/") || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") || slices.Contains(scripts, path.Ext(w))
}

// directory adds a directory that files may be named in.
func (n *naming) directory(dir string) {
	for _, d := range slices.Clone(n.dirs) {
		n.dirs = append(n.dirs, path.Join(d, dir))
	}
}

// file adds a file in each of the directories. An absolute path is not of the repository, and
// whether the file exists is not looked at: a change could add it.
func (n *naming) file(name string) {
	if path.IsAbs(name) {
		return
	}
	for _, d := range n.dirs {
		n.add(path.Join(d, name), n.why)
	}
}
