package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// The bounds of the values: generous, but a slip such as 1000 workers is found.
const (
	maxWorkers = 256
	maxBatch   = 64
	maxRetries = 20
	maxAsked   = 10
	maxTimeout = 24 * time.Hour
	maxBudget  = 1e6
	maxDepth   = 10
	maxPropose = 1000
	maxCount   = 20
)

// checker checks the values of a project and collects the errors. Its methods
// take the path of the value that they check ("policy.max_depth"), so that an
// error has the value's line.
type checker struct {
	pos  *strictyaml.Positions
	errs strictyaml.Errors
}

// fail notes an error about the value of a field.
func (c *checker) fail(field, format string, args ...any) {
	c.errs = append(c.errs, c.pos.Errorf(field, format, args...))
}

// project checks every value of a project.
func (c *checker) project(p *Project) {
	c.branch("base_branch", p.BaseBranch)
	c.within("parallel_workers", p.ParallelWorkers, 1, maxWorkers)
	c.within("merge_queue.parallel", p.MergeQueue.Parallel, 0, maxWorkers)
	c.within("merge_queue.batch", p.MergeQueue.Batch, 1, maxBatch)
	c.merge(&p.Merge)
	c.within("max_review_retries", p.MaxReviewRetries, 0, maxRetries)
	if least := p.Review.MinConfidence; !(least > 0 && least <= 1) {
		c.fail("review.min_confidence", "is %v; must be above 0 and at most 1", least)
	}
	c.within("review.max_checks", p.Review.MaxChecks, 0, maxAsked)
	c.oneOf("review.proof", string(p.Review.Proof), []string{string(ProofOff), string(ProofInform), string(ProofRequire)})
	c.patterns("review.test_files", p.Review.TestFiles)
	c.second(p)
	c.word("models.triage_deep", p.Models.TriageDeep)
	c.word("models.default", p.Models.Default)
	c.word("models.complex", p.Models.Complex)
	c.calls(&p.Calls)
	c.words("triage_tools", p.TriageTools)
	c.words("worker_tools", p.WorkerTools)
	c.agents(p)
	c.commands("verify", p.Verify)
	c.commands("worktree_setup", p.WorktreeSetup)
	c.checks(p.Checks)
	c.dir("worktree_dir", p.WorktreeDir)
	c.timeout("timeouts.analyze", p.Timeouts.Analyze)
	c.timeout("timeouts.implement", p.Timeouts.Implement)
	c.timeout("timeouts.verify", p.Timeouts.Verify)
	c.timeout("timeouts.review", p.Timeouts.Review)
	c.timeout("timeouts.idle", p.Timeouts.Idle)
	c.usd("budget.intent_usd", p.Budget.IntentUSD)
	c.usd("budget.project_usd", p.Budget.ProjectUSD)
	c.usd("budget.day_usd", p.Budget.DayUSD)
	c.usd("budget.call_usd", p.Budget.CallUSD)
	c.words("policy.trusted_origins", p.Policy.TrustedOrigins)
	c.patterns("policy.protected_paths", p.Policy.ProtectedPaths)
	c.approvals(&p.Policy)
	c.oneOf("policy.analyze_before_approval", string(p.Policy.AnalyzeBeforeApproval),
		[]string{string(AnalyzeRecipes), string(AnalyzeAlways), string(AnalyzeNever)})
	if p.Policy.Sandbox == "off" {
		c.fail("policy.sandbox", "no repository can turn the sandbox off: who runs pfl-forge may, for a machine, with FORGE_SANDBOX=unconfined; remove it")
	} else {
		c.oneOf("policy.sandbox", string(p.Policy.Sandbox), []string{string(SandboxAuto), string(SandboxRequire)})
	}
	c.oneOf("policy.network", string(p.Policy.Network), []string{string(NetworkFull), string(NetworkModel)})
	c.oneOf("policy.command_network", string(p.Policy.CommandNetwork), []string{string(NetworkFull), string(NetworkNone)})
	c.grants("policy.sandbox_read", p.Policy.SandboxRead)
	c.grants("policy.sandbox_write", p.Policy.SandboxWrite)
	c.within("policy.max_depth", p.Policy.MaxDepth, 0, maxDepth)
	c.within("reflection.max_generation", p.Reflection.MaxGeneration, 1, maxDepth)
	c.within("reflection.proposals_a_day", p.Reflection.ProposalsADay, 0, maxPropose)
	c.within("reflection.proposals_a_time", p.Reflection.ProposalsATime, 1, maxPropose)
	c.schedules(p)
	for _, name := range p.RecipeNames() {
		c.recipe("recipes."+name, name, p.Recipes[name])
	}
}

// approvals checks who may approve, and how many of them have to. It refuses a number that those
// who are named can never reach.
func (c *checker) approvals(p *Policy) {
	for i, name := range p.Approvers {
		at := fmt.Sprintf("policy.approvers[%d]", i)
		if strings.TrimSpace(name) == "" {
			c.fail(at, "is empty")
		}
		c.text(at, name)
		if slices.ContainsFunc(p.Approvers[:i], func(other string) bool { return strings.EqualFold(other, name) }) {
			c.fail(at, "%q is given twice; a person counts once", name)
		}
	}
	c.within("policy.approvals.count", p.Approvals.Count, 1, maxCount)
	if persons := len(p.Approvers); persons > 0 && p.Approvals.Count > persons {
		c.fail("policy.approvals.count", "is %d, but policy.approvers names %d; name more, or lower it", p.Approvals.Count, persons)
	}
}

// within refuses a number that is not between two others, which are allowed.
func (c *checker) within(field string, n, lo, hi int) {
	if n < lo || n > hi {
		c.fail(field, "is %d; must be between %d and %d", n, lo, hi)
	}
}

// timeout refuses a duration that is too short or too long for a call.
func (c *checker) timeout(field string, d time.Duration) {
	if d < time.Second || d > maxTimeout {
		c.fail(field, "is %s; must be between 1s and 24h", d)
	}
}

// usd refuses an amount that cannot be a budget.
func (c *checker) usd(field string, f float64) {
	if f < 0 || f > maxBudget {
		c.fail(field, "is %g; must be between 0 (no limit) and %g", f, maxBudget)
	}
}

// oneOf refuses a word that is not known.
func (c *checker) oneOf(field, s string, known []string) {
	if slices.Contains(known, s) {
		return
	}
	c.fail(field, "%q is not one of %s%s", s, strings.Join(known, ", "), suggestion("; ", s, known))
}

// suggestion returns how an error about an unknown word goes on after a separator: with the
// known word that was probably meant. It is empty if none was.
func suggestion(separator, s string, known []string) string {
	if best := strictyaml.Closest(s, known); best != "" {
		return fmt.Sprintf("%sdid you mean %q?", separator, best)
	}
	return ""
}

// word checks an argument of a command, such as a model or a tool. It refuses what the
// command could take for an option or for several arguments.
func (c *checker) word(field, s string) {
	switch {
	case s == "":
		c.fail(field, "must not be empty")
	case utf8.RuneCountInString(s) > 128:
		c.fail(field, "is longer than 128 characters")
	case s[0] == '-':
		c.fail(field, "must not start with a hyphen")
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ',' }):
		c.fail(field, "must not contain spaces, commas or control characters")
	}
}

// words checks a list of arguments.
func (c *checker) words(field string, list []string) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		c.word(at, s)
		if slices.Contains(list[:i], s) {
			c.fail(at, "%q is given twice", s)
		}
	}
}

// patterns checks paths and patterns of protected files. It refuses what no file of the
// repository can match: it would protect nothing, and look as if it did.
func (c *checker) patterns(field string, list []string) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		_, err := path.Match(s, "")
		switch {
		case err != nil:
			c.fail(at, "%q is no pattern: %v", s, err)
		case strings.Trim(s, "/") == "", strings.HasPrefix(s, "/"), strings.Contains(s, "//"), strings.Contains(s, "**"),
			slices.Contains(strings.Split(s, "/"), ".."), slices.Contains(strings.Split(s, "/"), "."):
			c.fail(at, "%q must be a path from the repository's root, such as .github/ or *.lock; a directory ends with /", s)
		}
	}
}

// commands checks shell commands.
func (c *checker) commands(field string, list []string) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if strings.TrimSpace(s) == "" {
			c.fail(at, "is an empty command; write : for a command that does nothing")
		}
		c.noNUL(at, s)
	}
}

// noNUL refuses a NUL character, which neither arguments nor paths can hold.
func (c *checker) noNUL(field, s string) {
	if strings.ContainsRune(s, 0) {
		c.fail(field, "must not contain a NUL character")
	}
}

// grants checks paths that are shown in the sandbox. It refuses a path that would show
// everything, or something else than it says.
func (c *checker) grants(field string, list []string) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		c.noNUL(at, s)
		switch rest, home := strings.CutPrefix(s, "~/"); {
		case s == "/" || s == "~" || home && path.Clean(rest) == ".":
			c.fail(at, "is everything; name what is needed in it")
		case !home && !path.IsAbs(s):
			c.fail(at, "%q must start with / or ~/", s)
		case slices.ContainsFunc([]string{"/dev", "/proc", "/sys", "/tmp"}, func(dir string) bool {
			return path.Clean(s) == dir || strings.HasPrefix(path.Clean(s), dir+"/") && dir != "/tmp"
		}):
			c.fail(at, "is made for each sandbox")
		case slices.Contains(strings.Split(s, "/"), ".."):
			c.fail(at, "must not contain ..")
		}
	}
}

// branch refuses a text that git does not take as the name of a branch, or that
// names something else to git or to pfl-forge. An empty one is fine if the key
// was left out.
func (c *checker) branch(field, s string) {
	if s == "" {
		if c.pos.Has(field) {
			c.fail(field, "must not be empty; leave the key out for the branch that is checked out")
		}
		return
	}
	if why := badBranch(s); why != "" {
		c.fail(field, "%q is no branch name: it %s", s, why)
	}
}

// badBranch returns why a text is no name of a branch, as the end of a
// sentence; empty if it is one. The rules are those of git check-ref-format,
// without names that mean something to pfl-forge.
func badBranch(s string) string {
	switch {
	case utf8.RuneCountInString(s) > 200:
		return "is longer than 200 characters"
	case strings.HasPrefix(s, "-"), strings.HasPrefix(s, "/"), strings.HasSuffix(s, "/"), strings.HasSuffix(s, "."):
		return "must not start with - or /, nor end with / or ."
	case s == "HEAD", s == "@", strings.HasPrefix(s, "refs/"), strings.HasPrefix(s, "forge/"):
		return "means something else"
	case strings.Contains(s, ".."), strings.Contains(s, "//"), strings.Contains(s, "@{"):
		return "must not contain .., // or @{"
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }):
		return `must not contain spaces, control characters or any of ~^:?*[\`
	}
	for part := range strings.SplitSeq(s, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return "has a part that starts with . or ends with .lock"
		}
	}
	return ""
}

// dir checks the directory of checkouts. It refuses one in which removing checkouts could
// reach other files.
func (c *checker) dir(field, s string) {
	clean := path.Clean(s)
	switch {
	case s == "":
		c.fail(field, "must not be empty")
	case clean == "." || clean == "/" || clean == ".." || strings.HasSuffix(clean, "/..") || clean == ".git" || strings.HasPrefix(clean, ".git/"):
		c.fail(field, "%q must be a directory of its own", s)
	}
	c.noNUL(field, s)
}

// glob checks a path or pattern of files below the repository's root.
func (c *checker) glob(field, s string) {
	switch {
	case s == "":
		c.fail(field, "must not be empty")
	case strings.HasPrefix(s, "/") || path.Clean(s) == ".." || strings.HasPrefix(path.Clean(s), "../"):
		c.fail(field, "%q must be relative to the repository's root and stay inside it", s)
	default:
		if _, err := path.Match(s, ""); err != nil {
			c.fail(field, "%q is no valid pattern: %v", s, err)
		}
	}
}
