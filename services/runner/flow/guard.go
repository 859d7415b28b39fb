package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// guard makes a change of protected paths wait for a person. What was approved is
// exactly that patch.
func (s *Intent) guard(t *task) bool {
	var list []string
	for _, f := range t.candidate.Files {
		for _, pattern := range s.policy.ProtectedPaths {
			if protects(pattern, f) {
				list = append(list, f)
				break
			}
		}
	}
	if len(list) == 0 || t.cleared == t.candidate.PatchID && t.cleared != "" {
		return false
	}
	t.stage = stageGuarded
	t.Failure = fmt.Sprintf("it changes what only a person may approve (policy.protected_paths): %s", strings.Join(list, ", "))
	s.adjust(ruleProtected, t.ID, "%s", strings.Join(list, ", "))
	return true
}

// protects reports whether a pattern is about a file: a directory if it ends with a
// slash, otherwise a name, with wildcards as in path.Match, of the whole path, or
// of its last element if the pattern has no slash. Letter case is ignored, because
// some file systems do.
func protects(pattern, file string) bool {
	pattern, file = strings.ToLower(pattern), strings.ToLower(file)
	if dir, ok := strings.CutSuffix(pattern, "/"); ok {
		return strings.HasPrefix(file, dir+"/") || !strings.Contains(dir, "/") && strings.Contains("/"+file, "/"+dir+"/")
	}
	if !strings.Contains(pattern, "/") {
		file = path.Base(file)
	}
	ok, err := path.Match(pattern, file)
	return ok && err == nil
}

// guarded lists the tasks whose changes wait for a person's approval.
func (s *Intent) guarded() []*task {
	var list []*task
	for _, t := range s.tasks {
		if t.stage == stageGuarded {
			list = append(list, t)
		}
	}
	return list
}

// hashChanges names the changes of tasks, so that an approval is of exactly those.
func hashChanges(tasks []*task) string {
	h := sha256.New()
	for _, t := range tasks {
		fmt.Fprintf(h, "%q %q\n", t.ID, t.candidate.PatchID)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
