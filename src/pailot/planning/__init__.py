"""What exactly will run? A `Job` becomes a `Plan`: scripts, environment, resources, order."""

from ..runfolder.plan import Image, Plan, PlannedCallback, Provision, RolePlan, Scripts
from .planner import check, findings, plan

__all__ = ["Image", "Plan", "PlannedCallback", "Provision", "RolePlan", "Scripts", "check", "findings", "plan"]
