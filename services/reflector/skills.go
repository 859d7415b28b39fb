package reflector

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	// skillsDir is where a repository keeps its skills, each in a directory of its name.
	skillsDir = ".claude/skills"
	// maxSkills bounds how many are shown, and maxSkillHead, in bytes, what is read of each.
	maxSkills    = 200
	maxSkillHead = 8 << 10
)

// skill is one that the repository has.
type skill struct {
	Name        string
	Description string
}

// skills lists what a checkout has. Nothing outside of it is read, wherever links lead.
func skills(dir string) ([]skill, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), skillsDir)
	if err != nil {
		return nil, nil // there is no such directory in the checkout
	}
	var list []skill
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, skill{e.Name(), description(root, path.Join(skillsDir, e.Name(), "SKILL.md"))})
		}
	}
	return list, nil
}

// description is what the front matter of a skill says of it; empty if that cannot be
// told.
func description(root *os.Root, name string) string {
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, maxSkillHead))
	for n := 0; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if (n == 0) != (line == "---") {
			return "" // it has no front matter, or this is its end
		}
		if text, ok := strings.CutPrefix(line, "description:"); ok {
			if text = strings.TrimSpace(text); strings.HasPrefix(text, ">") || strings.HasPrefix(text, "|") {
				lines.Scan() // it is in the lines below
				text = strings.TrimSpace(lines.Text())
			}
			return strings.Trim(text, `"'`)
		}
	}
	return ""
}
