package action

import (
	"cmp"
	"context"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/skills"
)

// SkillList is the skills that a profile finds.
type SkillList struct {
	Profile   string          `json:"profile"`
	Skills    []SkillFound    `json:"skills"`  // those that count, by name
	Hidden    []SkillFound    `json:"hidden"`  // those whose name another one has
	Skipped   []SkillSkipped  `json:"skipped"` // files that are none for what is wrong with them
	Providers []SkillProvider `json:"providers"`
	Warnings  []string        `json:"-"`
}

// SkillFound is a skill and who finds it.
type SkillFound struct {
	skills.Skill
	Provider string `json:"provider"`
	HiddenBy string `json:"hiddenBy,omitempty"` // the path of the one that counts
}

// SkillSkipped is a file that is no skill, and why.
type SkillSkipped struct {
	skills.Skipped
	Provider string `json:"provider"`
}

// SkillProvider is a row that looks for skills.
type SkillProvider struct {
	Name    string        `json:"name"`
	Row     Shown         `json:"row"` // null for a row without an id
	State   string        `json:"state"`
	From    *Where        `json:"from"`
	Roots   []skills.Root `json:"roots"`
	Problem string        `json:"problem"` // why it finds nothing, "" if it can
}

// ListSkills looks through the folders of all rows that provide skills. Of two
// skills with one name the one in the folder of the lower rank counts, then the one
// of the row that comes first. Without evaluate, rows with expressions find nothing.
func ListSkills(ctx context.Context, env Env, layers Layers, evaluate Evaluate) (*SkillList, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	list := &SkillList{
		Profile: layers.Name.String(), Skills: []SkillFound{}, Hidden: []SkillFound{}, Skipped: []SkillSkipped{}, Providers: []SkillProvider{},
		Warnings: slices.Concat(c.Warnings, c.leftOut(), c.Notices),
	}
	place := skills.Place{Cwd: env.Dir, DshHome: env.Home.Path()}
	if home, err := profile.UserHome(env.Getenv); err == nil {
		place.AgentsHome = skills.AgentsHome(env.Getenv, home)
	}
	h := newHistory(c.Tree)
	var all []SkillFound
	eachRow(c.Tree.Rows, "", func(row compose.Row, _ string) {
		if row.Name() != skills.PluginName {
			return
		}
		p := SkillProvider{Row: Shown{row.ID()}, State: h.state(row), Roots: []skills.Root{}}
		if where, ok := h.whereRow(row.Entry); ok {
			p.From = &where
		}
		var config skills.Config
		if err := rowConfig(ctx, row, evaluate, &config); err != nil {
			p.Problem = err.Error()
		}
		p.Name = config.Provider()
		if p.Problem == "" && p.State != rowOff {
			p.Roots = config.Roots(place)
			found := skills.Scan(p.Roots)
			for _, s := range found.Skills {
				all = append(all, SkillFound{Skill: s, Provider: p.Name})
			}
			for _, s := range found.Hidden {
				list.Hidden = append(list.Hidden, SkillFound{s.Skill, p.Name, s.By})
			}
			for _, s := range found.Skipped {
				list.Skipped = append(list.Skipped, SkillSkipped{s, p.Name})
			}
		}
		list.Providers = append(list.Providers, p)
	})
	slices.SortStableFunc(all, func(a, b SkillFound) int { return cmp.Compare(a.Root.Rank, b.Root.Rank) })
	by := map[string]string{}
	for _, s := range all {
		if path, taken := by[s.Name]; taken {
			if path == s.Path {
				continue // two rows search one folder
			}
			s.HiddenBy = path
			list.Hidden = append(list.Hidden, s)
			continue
		}
		by[s.Name] = s.Path
		list.Skills = append(list.Skills, s)
	}
	slices.SortStableFunc(list.Skills, func(a, b SkillFound) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// SkillShown is one skill with its instructions.
type SkillShown struct {
	SkillFound
	Body     string       `json:"body"`
	Hidden   []SkillFound `json:"hidden"` // others of the name
	Warnings []string     `json:"-"`
}

// ShowSkill is the skill of a name.
func ShowSkill(ctx context.Context, env Env, layers Layers, name string, evaluate Evaluate) (*SkillShown, error) {
	list, err := ListSkills(ctx, env, layers, evaluate)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list.Skills, func(s SkillFound) bool { return s.Name == name })
	if at < 0 {
		var names []string
		for _, s := range list.Skills {
			names = append(names, s.Name)
		}
		missing := fault.Errorf(fault.Other, "profile %s has no skill %q", list.Profile, name)
		if meant := compose.Closest(name, names); meant != "" {
			return nil, fault.WithHint(missing, "did you mean: dsh skills show %s --profile %s", fault.ShellWord(meant), fault.ShellWord(list.Profile))
		}
		return nil, fault.WithHint(missing, "dsh skills list --profile %s", fault.ShellWord(list.Profile))
	}
	shown := &SkillShown{SkillFound: list.Skills[at], Hidden: []SkillFound{}, Warnings: list.Warnings}
	if shown.Body, err = shown.Skill.Body(); err != nil {
		return nil, err
	}
	for _, s := range list.Hidden {
		if s.Name == name {
			shown.Hidden = append(shown.Hidden, s)
		}
	}
	return shown, nil
}
