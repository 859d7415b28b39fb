package cli

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// sessionLink is the content of the file that maps our session id to the CLI's.
type sessionLink struct {
	Native string `json:"native"`
}

// linkPath returns the path of a session's sessionLink.
func linkPath(state, id string) string { return filepath.Join(state, "forge-"+id+".json") }

// findSession returns the CLI's id of the session to resume, or "" for a new one. An
// unknown or malformed id is FailLostSession.
func findSession(state string, s agent.Session) (string, error) {
	if s.ID != "" && !agent.IsSessionID(s.ID) {
		return "", agent.Fail(forge.FailLostSession, "session %q does not belong to this agent", s.ID)
	}
	if !s.Resume {
		return "", nil
	}
	native, err := nativeSession(state, s.ID)
	if err != nil {
		return "", agent.Fail(forge.FailLostSession, "session %q is no longer on this replica", s.ID)
	}
	return native, nil
}

// nativeSession reads a sessionLink.
func nativeSession(state, id string) (string, error) {
	data, err := os.ReadFile(linkPath(state, id))
	if err != nil {
		return "", err
	}
	var l sessionLink
	if err := json.Unmarshal(data, &l); err != nil {
		return "", err
	}
	if !validNativeID(l.Native) {
		return "", errors.New("the session's file is damaged")
	}
	return l.Native, nil
}

// validNativeID reports whether s is safe as a command-line argument and as part of a
// path.
func validNativeID(s string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	return s != "" && len(s) <= 100 && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) })
}

// saveSession writes a sessionLink. It replaces the file atomically, because the
// service may be killed at any time.
func saveSession(state, id, native string) error {
	data, err := json.Marshal(sessionLink{Native: native})
	if err != nil {
		return err
	}
	path := linkPath(state, id)
	if err := process.Fill(state, map[string]string{filepath.Base(path) + ".tmp": string(data)}); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// SessionFiles returns the files of a session, relative to stateDir, with its
// sessionLink first. See agent.Sessions.
func (p *Program) SessionFiles(stateDir, id string) ([]string, error) {
	if !agent.IsSessionID(id) {
		return nil, nil
	}
	state := filepath.Join(stateDir, p.About.Backend)
	native, err := nativeSession(state, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := p.StoredFiles(state, native)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	out := []string{filepath.Join(p.About.Backend, filepath.Base(linkPath(state, id)))}
	for _, f := range found {
		out = append(out, filepath.Join(p.About.Backend, f))
	}
	return out, nil
}

// Glob returns the regular files below dir that match the pattern, relative to dir.
// Links are left out: an agent could make them point anywhere.
func Glob(dir, pattern string) ([]string, error) {
	found, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range found {
		if info, err := os.Lstat(filepath.Join(dir, f)); err == nil && info.Mode().IsRegular() {
			out = append(out, f)
		}
	}
	return out, nil
}

// HasPrefix reports whether a file begins with text.
func HasPrefix(path, text string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(text))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == text
}
