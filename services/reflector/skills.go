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
	// skillsDir is where a repository keeps its skills, each in a directory of its
	// name.
	skillsDir = ".claude/skills"
	// maxSkills bounds the skills in a prompt.
	maxSkills = 200
	// maxSkillHead bounds how much is read of each, in bytes.
	maxSkillHead = 8 << 10
)

// skill is a skill that the repository has.
type skill struct {
	Name        string
	Description string
}

// skills returns the skills in a checkout. Links cannot lead out of it.
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

// description returns the description in a skill's front matter; empty if there is
// none.
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
