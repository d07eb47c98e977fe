"""Someone else's loop, our error bars: `halfwidth.adapters.gymnasium`."""
