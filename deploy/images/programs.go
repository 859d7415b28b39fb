package main

// user is the numeric id that everything runs as: a cluster that demands a user other
// than root can check a number, not a name.
// The group has the same number.
const user = 65532

// program is one of our mains, and the image that is made of it.
// Its build settings are those of source.build for all.
type program struct {
	name  string // of the image
	title string // for people
	// module and main are folders: of the go.mod that pins what the binary is made of,
	// relative to the repository, and of the main package, relative to that.
	module, main string
	// file is the name of the binary in /usr/bin.
	file string
	// tools says that it runs git, commands of a repository and agents, so that the
	// image needs a base.
	tools bool
}

// programs are all that there are images of, in the order in which they are made.
var programs = []program{
	worker("analyzer", "plans intents"),
	{
		name: "gateway", title: "pfl-forge gateway: serves people and systems by HTTP",
		module: "services/gateway", main: "./cmd/gateway", file: "forge-gateway",
	},
	worker("implementer", "makes changes, verifies and merges them"),
	{
		name: "pfl-forge", title: "pfl-forge: the command line, for use with --server",
		module: "cmd/pfl-forge", main: ".", file: "pfl-forge",
	},
	worker("reflector", "looks back at runs that ended"),
	worker("reviewer", "judges changes"),
	{
		name: "runner", title: "pfl-forge runner: takes every decision",
		module: "services/runner", main: "./cmd/runner", file: "forge-runner",
	},
}

// worker returns a service that opens repositories (jobs/backends).
func worker(name, does string) program {
	return program{
		name: name, title: "pfl-forge " + name + ": " + does,
		module: "services/" + name, main: "./cmd/" + name, file: "forge-" + name, tools: true,
	}
}

// names returns the names of images, in the order of the programs, for help and for errors.
func names(programs []program) []string {
	var out []string
	for _, p := range programs {
		out = append(out, p.name)
	}
	return out
}
