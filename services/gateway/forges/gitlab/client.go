package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Config says which forge it is, and as whom we are there.
type Config struct {
	// URL is https://gitlab.com, or that of an instance of one's own, which may
	// have a path. Without TLS it has to be on this machine.
	URL string
	// TokenFile has a token of a person's account, a project or a group. It is
	// read for each request, so that it can be replaced.
	TokenFile string
	// Bots are logins of accounts that are programs, beside those of which GitLab says so.
	Bots []string
	// MaxAnswer bounds an answer, in bytes; 0 is 8 MiB.
	MaxAnswer int
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// Client is a forges.Forge and a forges.Pulls.
type Client struct {
	*rest.Client
	queued
	words
	discussions
	intakes

	cfg Config

	mu sync.Mutex
	// numbers has the number of each project that was asked for, by its name then.
	numbers map[string]int64
	// bots says of accounts whether they are programs, by their number. That does not change.
	bots map[int64]bool
}

// page is how many things one request lists, the most that GitLab gives. A list
// that has no per_page has 20.
const page = 100

// moved are the statuses with which a project answers by its former name. Only
// questions are answered so: to write by a former name is refused by 405, and
// never gets here, since writes are by number.
var moved = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// New returns a Client, or an error that names the setting.
func New(cfg Config) (*Client, error) {
	base, err := rest.ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg, numbers: map[string]int64{}, bots: map[int64]bool{}, Client: rest.New(rest.Config{
		Name: "GitLab", Base: base.JoinPath("/api/v4"), Now: cfg.Now, MaxAnswer: cfg.MaxAnswer, Follow: moved, Keep: true, Hold: new(rest.Hold), Denied: denied,
		Header: http.Header{"User-Agent": {"pfl-forge"}},
		Authorize: func(context.Context) (string, error) {
			token, err := rest.ReadToken(cfg.TokenFile)
			return "Bearer " + token, err
		},
	})}
	c.queued, c.discussions, c.words = queued{c}, discussions{c}, words{c}
	c.intakes = intakes{c}
	_, err = rest.ReadToken(cfg.TokenFile)
	return c, err
}

// denied returns the words for a refusal whose reason a person has to know. A
// merge that our account may not do is 401 as well, without words.
func denied(_ int, message string) string {
	switch m := strings.ToLower(message); {
	case strings.Contains(m, "insufficient_scope"):
		return "our token has not the scope api"
	case strings.Contains(m, "token was revoked"), strings.Contains(m, "token is expired"):
		return "our token has ended; make another one"
	}
	return ""
}

// projectJSON is a project, with those settings that decide how it merges.
type projectJSON struct {
	// ID does not change with the name, which is that of the groups around it and its own.
	ID   int64  `json:"id"`
	Name string `json:"path_with_namespace"`
	// Branch is the one that it merges into by default; empty before its first commit.
	Branch string `json:"default_branch"`
	// Visibility is public, internal (for all accounts of the instance) or private.
	Visibility string `json:"visibility"`
	// Issues and Requests say who sees its issues and its merge requests:
	// private is for members alone, whatever the project is.
	Issues   string `json:"issues_access_level"`
	Requests string `json:"merge_requests_access_level"`
	// Method is merge, rebase_merge or ff, and Squash never, always, default_on or default_off.
	Method string `json:"merge_method"`
	Squash string `json:"squash_option"`
	// Pipelines and Resolved are demands on each merge request, whatever its base is.
	Pipelines bool `json:"only_allow_merge_if_pipeline_succeeds"`
	Resolved  bool `json:"only_allow_merge_if_all_discussions_are_resolved"`
	// Trains says that it has merge trains.
	Trains bool `json:"merge_trains_enabled"`
}

// discloses reports whether more people see the merge requests of a project
// than its issues, of which they tell.
func (j *projectJSON) discloses() bool {
	return j.Issues == "private" && j.Requests != "private" && j.Visibility != "private"
}

// project asks for a project by its name, which is one part of the path: its slashes are
// escaped. It is the only question that is asked by a name, and so the one place that checks it.
func (c *Client) project(ctx context.Context, name string) (*projectJSON, error) {
	if err := intake.CheckNested(name); err != nil {
		return nil, fmt.Errorf("repository %.100q: %w", name, err)
	}
	var p projectJSON
	if err := c.Call(ctx, http.MethodGet, rest.Join("/projects", name), nil, &p); err != nil {
		return nil, err
	}
	if err := intake.CheckNested(p.Name); err != nil {
		return nil, fmt.Errorf("project %.100q: its path_with_namespace %w", name, err)
	}
	if p.ID <= 0 {
		return nil, fmt.Errorf("project %.100q: the answer has no id", name)
	}
	return &p, c.known(name, p.ID)
}

// known returns an error if a name is another project than it was: after a rename, whoever takes
// the name over decides about the issues there, and who may write.
func (c *Client) known(name string, id int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.ToLower(name)
	if was := c.numbers[key]; was != 0 && was != id {
		return fmt.Errorf("%w: %s is another project by now, number %d and not %d: it was renamed, and another one has its name",
			forges.ErrDenied, name, id, was)
	}
	c.numbers[key] = id
	return nil
}

// path returns the path of a project by its number, and of something in it: a number stays through
// renames, and GitLab lets nothing be written by a former name.
func (c *Client) path(ctx context.Context, name string, parts ...any) (string, error) {
	c.mu.Lock()
	id := c.numbers[strings.ToLower(name)]
	c.mu.Unlock()
	if id == 0 {
		p, err := c.project(ctx, name)
		if err != nil {
			return "", err
		}
		id = p.ID
	}
	return rest.Join("/projects/"+strconv.FormatInt(id, 10), parts...), nil
}

// Repository returns a project by its name. A former name leads to it as long as no other one has
// that.
func (c *Client) Repository(ctx context.Context, name string) (forges.Repository, error) {
	p, err := c.project(ctx, name)
	if err != nil {
		return forges.Repository{}, err
	}
	return forges.Repository{ID: p.ID, Name: p.Name}, nil
}

// userJSON is null for an account that is gone.
type userJSON struct {
	ID    int64  `json:"id"`
	Login string `json:"username"`
	// State is active for those who can do anything.
	State string `json:"state"`
	// Bot is there where one account is asked for.
	Bot bool `json:"bot"`
}

// botLogin finds the logins that GitLab gives to tokens of projects and groups, and to accounts
// of services.
var botLogin = pattern.New(`^((project|group)_\d+_bot|service_account_)`)

// account returns a user, whose permission is not known.
func (c *Client) account(u *userJSON) intake.Account {
	if u == nil {
		return intake.Account{}
	}
	a := intake.Account{ID: u.ID, Login: u.Login}
	named := slices.ContainsFunc(c.cfg.Bots, func(b string) bool { return strings.EqualFold(b, u.Login) })
	if u.ID <= 0 || u.Bot || named || botLogin.MatchString(u.Login) {
		a.Kind = intake.Bot
	}
	return a
}

// Self returns our account: that of a person, or the one that GitLab made for a token.
func (c *Client) Self(ctx context.Context) (intake.Account, error) {
	var u userJSON
	err := c.Call(ctx, http.MethodGet, "/user", nil, &u)
	return c.account(&u), err
}

// The levels of members. Those of roles that an organisation makes are those of
// the role they are based on. Below guest is minimal access (5), which sees no
// project; between planner and developer are reporter (20) and, in newer
// versions, others; above maintainer are owner (50) and administrator (60).
const (
	guest      = 10
	planner    = 15
	developer  = 30
	maintainer = 40
)

// memberJSON is a member of a project, of a group around it, or of a group that was invited: GitLab
// answers with the highest level of all of these.
type memberJSON struct {
	Level int64 `json:"access_level"`
	// Expires is a date; empty if it does not end.
	Expires string `json:"expires_at"`
	// Membership is awaiting until an owner lets them in.
	Membership string `json:"membership_state"`
	// State is that of the account: active for those who can do anything.
	State string `json:"state"`
}

// members asks for accounts and for their levels in a project.
type members struct{ *Client }

// level returns the level of an account in a project or a group, by its number; 0 for
// one that is no member, or that is one no longer, or not yet, or that was blocked.
func (c members) level(ctx context.Context, project string, id int64) (int64, error) {
	var m memberJSON
	err := c.Call(ctx, http.MethodGet, rest.Join(project, "members", "all", id), nil, &m)
	if errors.Is(err, forges.ErrNotFound) {
		return 0, nil
	}
	if m.State != "" && m.State != "active" || m.Membership == "awaiting" || m.Expires != "" && m.Expires <= c.cfg.Now().UTC().Format(time.DateOnly) {
		return 0, err
	}
	return m.Level, err
}

// Account returns an account with its permission in a project, as they are now. The login finds its
// number, and all else is asked for by that: names are given to others, numbers are not.
func (c *Client) Account(ctx context.Context, repository, login string) (intake.Account, error) {
	path, err := c.path(ctx, repository)
	if err != nil {
		return intake.Account{}, err
	}
	var users []userJSON
	if err := c.Call(ctx, http.MethodGet, "/users?username="+url.QueryEscape(login), nil, &users); err != nil {
		return intake.Account{}, err
	}
	i := slices.IndexFunc(users, func(u userJSON) bool { return u.ID > 0 && strings.EqualFold(u.Login, login) })
	if i < 0 {
		return intake.Account{}, fmt.Errorf("account %.100q: %w", login, forges.ErrNotFound)
	}
	u := users[i]
	if u.Bot, err = (members{c}).isProgram(ctx, u.ID); err != nil {
		return intake.Account{}, err
	}
	a := c.account(&u)
	level, err := (members{c}).level(ctx, path, u.ID)
	if err != nil {
		return intake.Account{}, err
	}
	if a.Kind != intake.Bot {
		a.Kind = intake.Outsider
		if level >= planner {
			a.Kind = intake.Member
		}
	}
	switch {
	case u.State != "" && u.State != "active": // it was blocked, and can do nothing
		a.Permission, a.Kind = intake.None, intake.Outsider
	case level >= maintainer:
		a.Permission = intake.Admin
	case level >= developer:
		a.Permission = intake.Write
	case level >= planner:
		a.Permission = intake.Triage
	case level >= guest:
		a.Permission = intake.Read
	default:
		return (members{c}).visitor(ctx, repository, a)
	}
	return a, nil
}

// visitor returns an account that is no member, which may read a project that
// is not private. Whether an account is an external user, who sees public ones
// alone, is told to administrators only.
func (c members) visitor(ctx context.Context, repository string, a intake.Account) (intake.Account, error) {
	p, err := c.project(ctx, repository)
	if err != nil {
		return intake.Account{}, err
	}
	a.Permission = intake.None
	if p.Visibility == "public" || p.Visibility == "internal" {
		a.Permission = intake.Read
	}
	return a, nil
}

// isProgram reports whether an account is a program, which GitLab tells of one
// account alone and in no list: the account of a token, of a service, or one of
// its own. It is asked once for each account.
func (c members) isProgram(ctx context.Context, id int64) (bool, error) {
	c.mu.Lock()
	bot, known := c.bots[id]
	c.mu.Unlock()
	if known {
		return bot, nil
	}
	var u userJSON
	if err := c.Call(ctx, http.MethodGet, rest.Join("/users", id), nil, &u); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	const most = 10_000
	if len(c.bots) >= most { // everybody can make an account and write something
		clear(c.bots)
	}
	c.bots[id] = u.Bot
	return u.Bot, nil
}
