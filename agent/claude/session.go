package claude

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// session selects the CLI's session of a call: a new one with a preset id, or the file
// of one to resume.
type session struct {
	id string
	// file is the file to resume; empty for a new session.
	file string
}

// findSession returns the session that a call asks for. settings is the CLI's own
// directory.
//
// The CLI refuses a new session whose file exists, which it does if an earlier process
// was killed before the model answered. Whether to resume such a session is the
// caller's decision; without Resume the file is renamed, so that the id is free.
func findSession(settings string, want agent.Session) (session, error) {
	if want.ID == "" {
		return session{id: agent.NewSessionID()}, nil
	}
	if !agent.IsSessionID(want.ID) {
		return session{}, agent.Fail(forge.FailLostSession, "session %q does not belong to this agent", want.ID)
	}
	file := sessionFile(settings, want.ID)
	switch {
	case want.Resume && file == "":
		return session{id: want.ID}, agent.Fail(forge.FailLostSession, "session %q is no longer on this replica", want.ID)
	case want.Resume:
		return session{id: want.ID, file: file}, nil
	case file != "":
		if err := os.Rename(file, file+".old"); err != nil {
			return session{id: want.ID}, agent.Fail(forge.FailRepository, "the session of an earlier call is in the way: %v", err)
		}
	}
	return session{id: want.ID}, nil
}

// arguments returns the flags that select the session.
func (s session) arguments() []string {
	if s.file != "" {
		return []string{"--resume", s.file} // a path works from any directory
	}
	return []string{"--session-id", s.id}
}

// stateName is the CLI's own directory below a StateDir.
const stateName = "claude"

// SessionFile returns the path of a session's file below a call's StateDir, or "" if
// there is none.
func SessionFile(stateDir, id string) string {
	if !agent.IsSessionID(id) {
		return ""
	}
	return sessionFile(filepath.Join(stateDir, stateName), id)
}

// SessionFiles returns the files of a session: the session's own, and those in the
// directory beside it with output that is too long for it. See agent.Sessions.
func (a *Agent) SessionFiles(stateDir, id string) ([]string, error) {
	file := SessionFile(stateDir, id)
	if file == "" {
		return nil, nil
	}
	rel, err := filepath.Rel(stateDir, file)
	if err != nil {
		return nil, err
	}
	files := []string{rel}
	beside := filepath.Join(filepath.Dir(file), id)
	err = filepath.WalkDir(beside, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreMissing(err)
		}
		rel, err := filepath.Rel(stateDir, path)
		files = append(files, rel)
		return err
	})
	return files, err
}

// ignoreMissing returns nil for a file that does not exist (any more).
func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// sessionFile returns the file of a session below the CLI's own directory, or "".
func sessionFile(settings, id string) string {
	found, err := filepath.Glob(filepath.Join(escape(settings), "projects", "*", id+".jsonl"))
	if err != nil {
		return ""
	}
	for _, f := range found {
		if info, err := os.Lstat(f); err == nil && info.Mode().IsRegular() {
			return f
		}
	}
	return ""
}

var globSpecial = pattern.New(`[\\*?\[]`)

// escape returns a glob pattern that matches only path.
// A backslash takes the meaning from the character after it.
func escape(path string) string { return globSpecial.ReplaceAllString(path, `\$0`) }
