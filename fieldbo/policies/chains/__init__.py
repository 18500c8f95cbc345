"""An optimum in a chain of modules, where changing an early setting is expensive: LaMBO and its rivals."""
