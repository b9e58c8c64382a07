"""The pages: Gradio assembles, module functions decide, plain dataclasses are the state."""
