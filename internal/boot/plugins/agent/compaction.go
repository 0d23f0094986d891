package agent

import (
	"context"
	"fmt"

	"dsh/internal/boot/host"
	"dsh/internal/fault"
)

// CompactionRule is when a conversation is shortened, and how much. Nil values
// are the defaults of the schema.
type CompactionRule struct {
	ThresholdRatio        *float64 `json:"thresholdRatio"`
	RetainRatio           *float64 `json:"retainRatio"` // not together with RetainTokens
	RetainTokens          *int     `json:"retainTokens"`
	SummarizationProvider string   `json:"summarizationProvider"`
	SummarizationModel    string   `json:"summarizationModel"`
	MaxTokens             *int     `json:"maxTokens"`
	CompactionRetries     *int     `json:"compactionRetries"`
	MaxOverflowRetries    *int     `json:"maxOverflowRetries"`
}

func (c CompactionRule) check() error {
	switch {
	case c.RetainRatio != nil && c.RetainTokens != nil:
		return fault.Errorf(fault.Composition, "retainRatio and retainTokens do not go together")
	case c.ThresholdRatio != nil && (*c.ThresholdRatio <= 0 || *c.ThresholdRatio > 1):
		return fault.Errorf(fault.Composition, "thresholdRatio is more than 0 and at most 1")
	case c.RetainRatio != nil && (*c.RetainRatio < 0 || *c.RetainRatio >= 1):
		return fault.Errorf(fault.Composition, "retainRatio is at least 0 and less than 1")
	case c.ThresholdRatio != nil && c.RetainRatio != nil && *c.RetainRatio >= *c.ThresholdRatio:
		return fault.Errorf(fault.Composition, "retainRatio is less than thresholdRatio, or nothing is shortened")
	}
	return nil
}

// ModelPolicy is the rule for one model.
type ModelPolicy struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	CompactionRule
}

// CompactionConfig is the configuration of compaction-basic.
type CompactionConfig struct {
	Auto *bool `json:"auto"` // nil is true
	CompactionRule
	Provider      *Endpoint     `json:"provider"` // nil is the service of llm
	ModelPolicies []ModelPolicy `json:"modelPolicies"`
}

// Compaction is how conversations are shortened.
type Compaction struct {
	CompactionConfig
	keys keys
}

// CompactionPlugin publishes how conversations are shortened.
var CompactionPlugin = host.Plugin{
	Inject:   needs(),
	Provides: []string{CompactionService},
	Start: func(_ context.Context, r *host.Row) error {
		var config CompactionConfig
		if err := r.Decode(&config); err != nil {
			return err
		}
		if err := config.check(); err != nil {
			return err
		}
		for i, p := range config.ModelPolicies {
			if p.Provider == "" || p.Model == "" {
				return fault.Errorf(fault.Composition, "modelPolicies[%d]: provider and model say which model it is for", i)
			}
			if err := p.check(); err != nil {
				return fmt.Errorf("modelPolicies[%d]: %w", i, err)
			}
		}
		c := &Compaction{config, keysOf(r)}
		if config.Provider != nil {
			if err := config.Provider.check(); err != nil {
				return fmt.Errorf("provider: %w", err)
			}
			if err := c.keys.tell(r, *config.Provider); err != nil {
				return fmt.Errorf("provider: %w", err)
			}
		}
		r.Logf(noAgent, CompactionService)
		r.Provide(CompactionService, c)
		return nil
	},
}
